"""Steps of another form than the spec of the env says, and actions outside of the space: refused where they enter."""

import logging

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_gymnasium import step_form
from rlcore_plugin_rollout.action_check import ActionCheck
from rlcore_plugin_rollout.space_watch import SpaceWatch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.toy import ToyEnv, ToyPolicy

from rlcore import rollout
from rlcore.envs import step_checks
from rlcore.envs.transformed import TransformedEnv
from rlcore.errors import EnvError, PluginError
from rlcore.types import EnvSpec, Step


class Given(gymnasium.Env):
    """Returns what it is told to, from its third step on."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    returned = {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.returned.get("at reset", np.zeros(4, np.float32)), {}

    def step(self, action):
        self.steps += 1
        right = {"observation": np.zeros(4, np.float32), "reward": 1.0, "terminated": False, "truncated": False}
        given = right | self.returned if self.steps >= 3 else right
        return *(given[name] for name in right), {}


@pytest.fixture
def returns(monkeypatch):
    gymnasium.register("Given-v0", Given, max_episode_steps=10)
    yield lambda **returned: monkeypatch.setattr(Given, "returned", returned)
    gymnasium.registry.pop("Given-v0")


def given(evaluator=None, **keys):
    env = {"use": "gymnasium", "id": "Given-v0", "num_envs": 2, **keys}
    return make_run(sections={"env": env, "evaluator": evaluator or []}).trainer


WRONG = [
    ({"observation": np.zeros(1, np.float32)}, r"observation: expected shape \(4,\), found \(1,\)"),
    ({"observation": 0.5}, r"observation: expected shape \(4,\), found \(\)"),
    ({"observation": "x"}, "observation: expected numbers, found 'x'"),
    ({"observation": [1, [2]]}, "rows of unequal lengths"),
    ({"observation": np.zeros(4, complex)}, "observation: expected numbers"),
    ({"observation": None}, "observation: expected numbers, found None"),
    ({"reward": "1"}, "reward: expected numbers, found '1'"),
    ({"reward": None}, "reward: expected numbers, found None"),
    ({"reward": [1.0, 2.0]}, r"reward: expected shape \(\), found \(2,\)"),
    ({"terminated": "no"}, "terminated: expected true or false, found 'no'"),
    ({"terminated": float("nan")}, r"terminated: expected true or false \(bool\), found nan"),
    ({"truncated": None}, "truncated: expected true or false, found None"),
    ({"truncated": 2}, r"truncated: expected true or false \(bool\), found 2"),
]


@pytest.mark.parametrize(("returned", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_step_of_a_gymnasium_env_is_an_error_that_says_what_was_expected(returns, returned, message):
    returns(**returned)
    with pytest.raises(
        EnvError, match=rf"'Given-v0', number 0, raised ValueError at step 3 of its episode: .*{message}"
    ):
        given().train()


def test_a_wrong_first_observation_is_an_error(returns):
    returns(**{"at reset": np.zeros(1, np.float32)})
    with pytest.raises(
        EnvError,
        match=r"number 0, raised ValueError at step 0 of its episode: observation: expected shape \(4,\), found \(1,\)",
    ):
        given().train()


def test_a_wrong_step_of_an_evaluation_is_an_error(returns):
    returns(reward="1")
    with pytest.raises(EnvError, match="reward: expected numbers"):
        given(evaluator={"use": "episodes", "episodes": 1}).train()


@pytest.mark.parametrize(
    "returned",
    [
        {"observation": [0, 0, 0, 1]},
        {"observation": np.zeros(4)},
        {"reward": 1},
        {"reward": np.float32(1)},
        {"reward": np.array([1.0])},
        {"reward": torch.tensor([1.0])},
        {"reward": torch.tensor(1.0, requires_grad=True)},
        {"reward": True},
        {"terminated": 0},
        {"terminated": np.False_},
        {"truncated": np.array(False)},
    ],
    ids=str,
)
def test_what_means_the_same_is_taken(returns, returned):
    returns(**returned)
    trainer = given()
    trainer.train()
    assert trainer.progress.frames == 64


def test_an_observation_of_integers_is_not_cut_off(returns, monkeypatch):
    monkeypatch.setattr(Given, "observation_space", gymnasium.spaces.Box(0, 255, (4,), np.uint8))
    for wrong in (np.full(4, 0.5), np.full(4, 256), np.full(4, -1)):
        returns(**{"at reset": np.zeros(4, np.uint8), "observation": wrong})
        with pytest.raises(EnvError, match="expected integers"):
            given().train()


def test_observations_outside_of_their_space_are_said_once(returns, caplog):
    returns(observation=np.full(4, 5.0, np.float32))
    with caplog.at_level(logging.WARNING):
        given().train()
    assert len([record for record in caplog.records if "outside of its space" in record.message]) == 1


def test_of_several_workers_one_says_that_observations_lie_outside_of_their_space(returns, tmp_path):
    returns(observation=np.full(4, 5.0, np.float32))
    env = {"use": "gymnasium", "id": "Given-v0", "num_envs": 2}
    collector = {
        "use": "parallel:workers",
        "processes": "always",
        "num_workers": 2,
        "frames_per_batch": 32,
        "start_method": "fork",
    }
    log = logging.getLogger("rlcore_plugin_rollout.space_watch")
    log.addHandler(handler := logging.FileHandler(tmp_path / "log"))  # which forked processes write into too
    try:
        make_run(sections={"env": env, "evaluator": [], "collector": collector}).trainer.train()
    finally:
        log.removeHandler(handler)
        handler.close()
    assert (tmp_path / "log").read_text().count("outside of its space") == 1


class Bent(ToyEnv):
    """A vector env that changes a part of each step."""

    changed = {}

    def step(self, action):
        return super().step(action)._replace(**self.changed)


BENT = [
    ({"observation": np.zeros((2, 1), np.float32)}, r"observation: expected shape \(2, 3\), found \(2, 1\)"),
    ({"reward": np.float32(1)}, r"reward: expected shape \(2,\), found \(\)"),
    ({"reward": np.array(["1", "2"])}, "reward: expected numbers"),
    ({"terminated": np.array([[True], [False]])}, r"terminated: expected shape \(2,\), found \(2, 1\)"),
    ({"truncated": np.array([0.0, np.nan])}, "truncated: expected true or false"),
    ({"final_observation": {0: np.zeros(1)}}, r"final_observation of env 0: expected shape \(3,\), found \(1,\)"),
]


@pytest.mark.parametrize(("changed", "message"), BENT, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_step_of_a_vector_env_is_an_error_in_training_evaluation_and_scripts(monkeypatch, changed, message):
    trainer = make_run().trainer
    bent = Bent(ToyEnv.Config())
    bent.changed = changed
    trainer.collector._stepper.env = bent
    with pytest.raises(EnvError, match=message):
        trainer.train()
    with pytest.raises(EnvError, match=message):
        rollout(bent, 3)
    seen = TransformedEnv(bent, [])
    seen.reset()
    with pytest.raises(EnvError, match=message):
        seen.step(np.zeros((2, 1), np.float32))


def spec(space):
    return EnvSpec("toy", gymnasium.spaces.Box(-1, 1, (3,)), space, num_envs=2)


BOX = gymnasium.spaces.Box(np.array([0, -np.inf], np.float32), np.array([1, 2], np.float32))


@pytest.mark.parametrize(
    ("space", "right", "wrong"),
    [
        (BOX, [[0.0, -1e9], [1.0, 2.0]], [[0.5, 2.1], [-0.1, 0.0], [np.nan, 0.0]]),
        (gymnasium.spaces.Box(0, 3, (1,), np.int64), [[0], [3]], [[4], [-1], [0.5]]),
        (gymnasium.spaces.Discrete(3, start=1), [1, 3], [0, 4]),
        (gymnasium.spaces.MultiDiscrete([2, 3]), [[1, 2]], [[2, 0], [0, 3]]),
        (gymnasium.spaces.MultiBinary(2), [[0, 1]], [[2, 0]]),
    ],
)
def test_actions_outside_of_a_space_are_refused(space, right, wrong):
    ActionCheck(spec(space))(torch.tensor(right))
    for action in wrong:
        with pytest.raises(PluginError, match="outside of the action space"):
            ActionCheck(spec(space))(torch.tensor([action]))


@pytest.mark.parametrize(
    ("low", "high"), [(-0.1, 0.1), (0.7, np.inf), (-np.inf, 0.1), (1 / 3, 1000.1)], ids=lambda bound: f"{bound:.3g}"
)
def test_an_action_at_a_bound_may_be_rounded_to_single_precision(low, high):
    check = ActionCheck(spec(gymnasium.spaces.Box(low, high, (1,), np.float64)))
    bounds = [bound for bound in (low, high) if np.isfinite(bound)]
    check(torch.tensor([[bound] for bound in bounds], dtype=torch.float32))
    for bound in bounds:
        with pytest.raises(PluginError, match="outside of the action space"):
            check(torch.tensor([[bound - 0.01 if bound == low else bound + 0.01]]))


@pytest.mark.filterwarnings("error")
def test_a_bound_beyond_single_precision_is_none(caplog):
    most = np.finfo(np.float64).max
    watch = SpaceWatch(EnvSpec("toy", gymnasium.spaces.Box(-most, most, (3,), np.float64), BOX, num_envs=2))
    watch.look(np.full((2, 3), 1e38, np.float32))
    assert not caplog.records


@pytest.mark.parametrize("dtype", [np.float64, np.int64], ids=str)
def test_steps_of_numbers_of_another_width_are_looked_at_once(monkeypatch, dtype):
    """A vector env may give new arrays in every step; those like the first cost no more than a look at their sizes."""
    looked = []
    monkeypatch.setattr(step_checks, "as_numbers", lambda *given: looked.append(given) or given[0])
    check = step_checks.StepCheck(EnvSpec("toy", gymnasium.spaces.Box(-1, 1, (3,)), BOX, num_envs=2))
    for _ in range(5):
        flags = np.zeros(2, bool)
        check(Step(np.zeros((2, 3), dtype), np.zeros(2, dtype), flags, flags.copy(), {}, {}))
    assert len(looked) == 4


def test_discrete_observations_that_are_plain_integers_are_looked_at_once(monkeypatch):
    looked = []
    monkeypatch.setattr(step_form, "as_numbers", lambda *given: looked.append(given) or np.asarray(given[0]))
    form = step_form.StepForm((), np.dtype(np.int64))
    for _ in range(5):
        assert form.fitting(3, 1, False, np.False_) == (3, 1, False, False)
    assert len(looked) == 4


@pytest.mark.parametrize("method", ["act", "mode"])
def test_a_policy_that_acts_outside_of_the_space_ends_the_run(monkeypatch, method):
    right = getattr(ToyPolicy, method)

    def outside(self, *arguments):
        found = right(self, *arguments)
        return (found[0] + 9, found[1]) if method == "act" else found + 9

    monkeypatch.setattr(ToyPolicy, method, outside)
    env = {"use": "testing:toy", "actions": "bounded"}
    with pytest.raises(PluginError, match=r"outside of the action space Box\(-0.5, 2.0"):
        make_run(sections={"env": env}).trainer.train()


def test_an_env_with_a_bound_on_one_side_is_never_stepped_outside_of_it(monkeypatch, returns):
    seen = []

    def step(self, action):
        seen.append(action)
        return np.zeros(4, np.float32), float(-action[0]), False, False, {}

    space = gymnasium.spaces.Box(0, np.inf, (1,), np.float32)
    monkeypatch.setattr(Given, "action_space", space)
    monkeypatch.setattr(Given, "step", step)
    env = {"use": "gymnasium", "id": "Given-v0"}
    parts = {"model": {"use": "mlp"}, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}}
    make_run(sections={"env": env, **parts}).trainer.train()
    assert len(seen) > 64
    assert all(space.contains(action) for action in seen)


def test_an_env_that_takes_integers_works_with_scaled_actions(monkeypatch, returns):
    seen = []

    def step(self, action):
        seen.append(action)
        return np.zeros(4, np.float32), 0.0, False, False, {}

    space = gymnasium.spaces.Box(-3, 7, (2,), np.int64)
    monkeypatch.setattr(Given, "action_space", space)
    monkeypatch.setattr(Given, "step", step)
    sections = {"env": {"use": "gymnasium", "id": "Given-v0"}, "model": {"use": "mlp"}}
    with pytest.raises(Exception, match=r"no distribution for the action space Box\(-3, 7, \(2,\), int64\)"):
        make_run(sections=sections)
    make_run(sections={**sections, "transform": [{"use": "transforms:action-scale"}]}).trainer.train()
    assert all(space.contains(action) for action in seen)
    assert len(np.unique(np.stack(seen))) > 5
