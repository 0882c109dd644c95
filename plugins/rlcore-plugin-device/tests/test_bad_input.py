"""What cannot be is an error that says what to do, before the first frame where it can be known by then."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rlcore_plugin_device import FunctionalEnv
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import ConfigError, EnvError, PluginError, RlcoreError, StorageError

from .reach import Reach
from .tensor_envs import Counter, NotFinite, NotFinitelySeen

EXAMPLE = Path(__file__).with_name("example.toml")
SECTIONS = {
    "env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 4},
    "model": {"use": "mlp", "hidden": [8]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "collector": {"use": "device", "frames_per_batch": 16},
}


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"env": {"use": "gymnasium", "id": "CartPole-v1"}}, "is one of arrays; take one of rlcore-plugin-torch-envs"),
        ({"env": {**SECTIONS["env"], "id": "CartPole-v3"}}, "no such env in torch.*CartPole-v1"),
        ({"transform": [{"use": "transforms:frame-stack", "frames": 2}]}, "FrameStack works on arrays"),
        ({"collector": {"use": "device", "frames_per_batch": 18}}, "is not a multiple of 4"),
    ],
)
def test_a_run_that_cannot_be_is_refused(sections, expected):
    with pytest.raises(RlcoreError, match=expected):
        make_run(sections={**SECTIONS, **sections})


def env_with(**methods):
    named = type("Reach", (Reach,), methods)
    bench = EnvContract.of("testing:toy")
    bench.target = named
    return bench.make(bench.bench(), num_envs=3)


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ({"initial": lambda self, random: {"position": [0.0, 0.0]}}, r"initial\['position'\] gives list, not a tensor"),
        ({"initial": lambda self, random: {"position": torch.zeros(2)}}, r"the shape \[2\], not \[3"),
        ({"transition": lambda self, state, action, random: {}}, r"the names \[\], not those of initial"),
        (
            {"transition": lambda self, state, action, random: {"position": state["position"].double()}},
            r"torch.float64, not torch.float32",
        ),
        ({"observation": lambda self, state: state["position"][:, :1]}, r"the shape \[3, 1\], not \[3, 2\]"),
        ({"observation": lambda self, state: state["position"].double()}, "torch.float64, not torch.float32"),
        ({"reward": lambda self, state, action, next_state: torch.ones(3, 1)}, r"reward gives the shape \[3, 1\]"),
        ({"reward": lambda self, state, action, next_state: torch.ones(3).long()}, "torch.int64, not floats"),
        ({"terminal": lambda self, state: torch.zeros(3)}, "torch.float32, not torch.bool"),
    ],
)
def test_a_method_of_another_form_is_an_error_at_the_reset(methods, expected):
    env = env_with(**methods)
    with pytest.raises(EnvError, match=expected):
        env.reset_tensors(0)


def set_item(state, action, random):
    state["position"] = state["position"] + action


@pytest.mark.parametrize(
    ("method", "changes", "expected"),
    [
        ("transition", lambda state, action, random: state["position"].add_(action), r"state\['position'\] in place"),
        ("transition", lambda state, action, random: action.clamp_(-0.5, 0.5), "action in place"),
        ("transition", set_item, r"state\['position'\] in place"),
        ("observation", lambda state: state["position"].mul_(1.0), r"observation changes state\['position'\] in place"),
        ("reward", lambda state, action, following: following["position"].zero_(), r"next_state\['position'\]"),
        ("terminal", lambda state: state["position"].neg_(), r"terminal changes next_state\['position'\]"),
    ],
)
def test_a_method_that_changes_what_it_is_given_is_an_error_at_the_reset(method, changes, expected):
    def changing(self, *given):
        changes(*given)
        return getattr(Reach, method)(self, *given)

    env = env_with(**{method: changing})
    for mode in (torch.no_grad, torch.inference_mode):
        with pytest.raises(EnvError, match=expected), mode():
            env.reset_tensors(0)


class Counting(Reach):
    """Its state is in part outside of the state: the wind grows from call to call."""

    wind = 0.0

    def transition(self, state, action, random):
        self.wind += 0.1
        return {"position": state["position"] + self.wind}


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ({"transition": Counting.transition, "wind": 0.0}, "transition gives something else when it is called again"),
        ({"initial": lambda self, random: {"position": torch.rand(self.num_envs, 2)}}, "initial gives something else"),
        ({"reward": lambda self, state, action, following: torch.randn(3)}, "draw numbers from the argument random"),
        ({"terminal": lambda self, state: torch.rand(3).argsort() == 0}, "terminal gives something else"),
    ],
)
def test_a_method_that_is_no_function_is_an_error_at_the_reset(methods, expected):
    if "terminal" in methods:
        flips = iter([torch.tensor([True, False, False]), torch.tensor([False, True, False])])
        methods = {"terminal": lambda self, state: next(flips)}
    with pytest.raises(EnvError, match=expected):
        env_with(**methods).reset_tensors(0)


def counting(device=None, reset=None, **parts):
    """The collector over envs that step by themselves, in which some parts of a step have another form."""

    class Odd(Counter):
        def __init__(self, config, context):
            super().__init__(config, context)
            self.device = device or self.device

        def reset_tensors(self, seed=None):
            observation = super().reset_tensors(seed)
            return observation if reset is None else reset(observation)

        def step_tensors(self, action):
            step = super().step_tensors(action)
            return step._replace(**{name: change(getattr(step, name)) for name, change in parts.items()})

    around = {key: value for key, value in SECTIONS.items() if key != "env"} | {"evaluator": []}
    bench = EnvContract.of("testing:toy", around=around)
    bench.target = Odd
    return bench.run(changes={"num_envs": 4}).trainer.parts.collector


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"reset": lambda seen: seen[:1]}, r"reset_tensors gives the shape \[1, 2\], not \[4, 2\]"),
        ({"reset": lambda seen: seen.numpy()}, r"reset_tensors gives ndarray, not a tensor"),
        (
            {"observation": lambda seen: seen.double()},
            "step_tensors.observation gives torch.float64, not torch.fl",
        ),
        ({"observation": lambda seen: seen[0]}, r"step_tensors.observation gives the shape \[2\], not \[4, 2\]"),
        ({"final_observation": lambda seen: seen[:1]}, r"final_observation gives the shape \[1, 2\], not \[4, 2\]"),
        ({"final_observation": lambda seen: None}, r"final_observation gives NoneType, not a tensor"),
        ({"reward": lambda reward: reward[:1]}, r"step_tensors.reward gives the shape \[1\], not \[4\]"),
        ({"reward": lambda reward: reward.long()}, r"step_tensors.reward gives torch.int64, not floats"),
        ({"terminated": lambda over: over.float()}, r"terminated gives torch.float32, not torch.bool"),
        ({"truncated": lambda over: over.any()}, r"truncated gives the shape \[\], not \[4\]"),
        ({"reward": lambda reward: reward.to("meta")}, r"reward gives a tensor on meta, not one on cpu"),
    ],
)
def test_a_simulator_that_gives_another_form_is_an_error_at_the_first_step(changed, expected):
    """Each of these would be written into the batch without a word, or fail in words of torch."""
    with pytest.raises(EnvError, match=f"env 'counter': Odd.*{expected}"):
        counting(**changed).collect()


def test_rewards_of_another_width_are_taken():
    batch, expected = (counting(**changed).collect() for changed in ({"reward": torch.Tensor.double}, {}))
    assert torch.equal(batch["next", "reward"], expected["next", "reward"])


@pytest.mark.parametrize("device", ["meta", "cuda:0"])
def test_envs_of_another_device_are_refused_before_the_first_frame(device):
    with pytest.raises(RlcoreError, match=f"its tensors on {device}, and the run is on cpu; build it with"):
        counting(device=torch.device(device))


def test_a_simulator_that_writes_into_the_actions_is_an_error_at_the_first_step(monkeypatch):
    collector = counting()
    step = collector._env.step_tensors
    monkeypatch.setattr(collector._env, "step_tensors", lambda action: step(action.clamp_(0, 0)))
    with pytest.raises(EnvError, match="step_tensors changes the actions in place; work on a copy"):
        collector.collect()


def test_an_env_without_spaces_is_refused():
    methods = {name: value for name, value in vars(Reach).items() if name != "observation_space"}
    bench = EnvContract.of("testing:toy")
    bench.target = type("Bare", (FunctionalEnv,), methods)
    with pytest.raises(RlcoreError, match="Bare has no observation_space"):
        bench.make(bench.bench())


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("env", (EnvError, "env 'torch-envs' raised ZeroDivisionError: on purpose in the batch that began at frame 0")),
        ("policy", (ZeroDivisionError, "on purpose")),
        ("action", (PluginError, "the action 7")),
    ],
)
def test_whose_error_it_is(monkeypatch, part, expected):
    collector = make_run(sections=SECTIONS).trainer.parts.collector

    def fail(*inputs):
        if part == "action":
            return torch.full((4,), 7), torch.zeros(4, 2)
        raise ZeroDivisionError("on purpose")

    owner, method = (collector._env, "step_tensors") if part == "env" else (collector._policy, "act")
    monkeypatch.setattr(owner, method, fail)
    with pytest.raises(expected[0], match=expected[1]):
        collector.collect()


def test_episodes_of_other_envs_are_refused():
    saved = make_run(sections=SECTIONS).trainer.parts.collector
    saved.collect()
    more = {**SECTIONS, "env": {**SECTIONS["env"], "num_envs": 8}}
    other = make_run(sections=more).trainer.parts.collector
    with pytest.raises(StorageError, match=r"the latest observation is \[8, 4\] here, \[4, 4\] in the checkpoint"):
        other.load_state_dict(saved.state_dict())


@pytest.mark.parametrize("env", [NotFinite, NotFinitelySeen])
def test_a_value_that_is_not_finite_ends_the_batch(env):
    sections = {key: value for key, value in SECTIONS.items() if key != "env"}
    bench = EnvContract.of("testing:toy", around={**sections, "evaluator": []})
    bench.target = env
    trainer = bench.run(changes={"num_envs": 4}).trainer
    with pytest.raises(EnvError, match="not finite; the batch is discarded"):
        trainer.train()
    assert trainer.progress.frames == 0


@pytest.mark.parametrize("use", ["device", "local"])
def test_what_a_simulator_overwrites_stays_in_the_batch(use):
    """Every row is that of its own step, though all steps are views of one state."""
    around = {**{key: value for key, value in SECTIONS.items() if key != "env"}, "evaluator": []}
    bench = EnvContract.of("testing:toy", around={**around, "collector": {"use": use, "frames_per_batch": 16}})
    bench.target = Counter
    collector = bench.run(changes={"num_envs": 4}).trainer.parts.collector
    before = None
    for _ in range(3):
        batch = collector.collect()
        seen, last, action = batch["observation"], batch["next", "observation"], batch["action"]
        count, done = seen[..., 0], batch["next", "done"].squeeze(-1)
        assert torch.equal(last[..., 0], count + 1)
        assert torch.equal(last[..., 1], action.float())
        assert torch.equal(batch["next", "reward"].squeeze(-1), (count + 1).remainder(5) + action)
        assert torch.equal(done, (count + 1).remainder(3) == 0)
        following = torch.where(done[:, :-1], 0, action[:, :-1].float())
        assert torch.equal(seen[:, 1:, 1], following)
        assert before is None or torch.equal(count[:, 0], before + 1)
        before = count[:, -1].clone()


def test_fewer_envs_than_ranks_are_refused(tmp_path):
    text = EXAMPLE.read_text().replace("num_envs = 256", "num_envs = 1") + "\n[ranks]\ncount = 2\n"
    (tmp_path / "few.toml").write_text(text)
    (tmp_path / "reach.py").write_text(EXAMPLE.with_name("reach.py").read_text())
    command = [sys.executable, "-m", "rlcore", "train", "few.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "num_envs = 1 is that of the whole run, and 2 ranks" in done.stderr


def test_workers_step_envs_of_tensors_as_arrays():
    workers = {"use": "parallel:workers", "num_workers": 2, "frames_per_batch": 16}
    trainer = make_run(sections={**SECTIONS, "collector": workers, "evaluator": []}).trainer
    assert trainer.train().frames == 64


def looks(self, state, action, random):
    if bool((state["position"] > 5).any()):
        return {"position": state["position"]}
    return Reach.transition(self, state, action, random)


@pytest.mark.parametrize("memory", [False, True])
def test_a_condition_on_tensors_is_refused_where_a_step_is_compiled(memory):
    """Without `compile` such an env is slower, and no more."""
    sections = {key: value for key, value in SECTIONS.items() if key != "env"} | {"evaluator": []}
    if memory:
        sections |= {
            "model": {"use": "recurrent:lstm", "size": 8},
            "buffer": {"use": "rollout-sequences", "sequence_length": 4, "minibatch_size": 8},
        }
    for compiled in (True, False):
        around = {**sections, "collector": {**SECTIONS["collector"], "compile": compiled}}
        bench = EnvContract.of("testing:toy", around=around)
        bench.target = type("Looking", (Reach,), {"transition": looks})
        trainer = bench.run(changes={"num_envs": 4}).trainer
        if compiled:
            expected = (
                r"compile: a step of policy and env 'under-test' is no one graph \(test_bad_input.py, line \d+, in"
            )
            with pytest.raises(RlcoreError, match=expected):
                trainer.train()
        else:
            trainer.train()
        assert trainer.progress.frames == (0 if compiled else 64)


def test_a_compiler_that_is_missing_is_asked_for_by_the_key_of_the_collector(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "unused")
    with pytest.raises(ConfigError, match=r"\[collector\] compile = true needs a C\+\+ compiler"):
        make_run(sections={**SECTIONS, "collector": {**SECTIONS["collector"], "compile": True}})
