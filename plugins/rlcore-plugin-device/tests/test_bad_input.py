"""What cannot be is an error that says what to do, before the first frame where it can be known by then."""

import pytest
import torch
from rlcore_plugin_device import FunctionalEnv
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import EnvError, PluginError, RlcoreError, StorageError

from .reach import Reach
from .tensor_envs import NotFinite

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
        ({"transform": [{"use": "transforms:reward-scale"}]}, "work on arrays"),
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


def test_a_value_that_is_not_finite_ends_the_batch():
    sections = {key: value for key, value in SECTIONS.items() if key != "env"}
    bench = EnvContract.of("testing:toy", around={**sections, "evaluator": []})
    bench.target = NotFinite
    trainer = bench.run(changes={"num_envs": 4}).trainer
    with pytest.raises(EnvError, match="not finite; the batch is discarded"):
        trainer.train()
    assert trainer.progress.frames == 0
