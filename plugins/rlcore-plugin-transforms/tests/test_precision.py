"""Observations far from zero: what is normalised keeps the differences that double precision holds."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_transforms.fixed_norm import ObservationNorm

from rlcore.types.context import Context

SINCE_1970 = 1_700_000_000


class Clock(gymnasium.Env):
    """Observes one of two seconds of 2023, in turn."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, dtype):
        self.observation_space = gymnasium.spaces.Box(0, 2**62, (1,), np.dtype(dtype).type)

    def _seen(self):
        return np.array([SINCE_1970 + self.time % 2], self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        return self._seen(), 0.0, False, False, {}


gymnasium.register("Seconds-v0", Clock)
NORMS = ["gymnasium:observation-norm", "transforms:running-observation-norm"]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("before", [None, "transforms:flatten", "transforms:last-step", "transforms:time-feature"])
@pytest.mark.parametrize("norm", NORMS)
def test_seconds_since_1970_have_mean_0_and_deviation_1(norm, before, dtype):
    env = {"use": "gymnasium", "id": "Seconds-v0", "num_envs": 2, "max_episode_steps": 10, "kwargs": {"dtype": dtype}}
    transforms = [{"use": use} for use in (before, norm) if use]
    sections = {"env": env, "transform": transforms, "model": {"use": "mlp", "hidden": [4]}}
    trainer = make_run(sections=sections).trainer
    for _ in range(5):
        batch = trainer.collector.collect()
    seen = batch["observation"][..., 0]
    assert batch["observation"].dtype == torch.float32
    assert abs(seen.mean()) < 0.2
    assert abs(seen.std() - 1) < 0.2
    frozen = [transform.frozen() for transform in trainer.transforms]
    raw, first = np.array([[SINCE_1970], [SINCE_1970 + 1]], dtype), np.ones(2, dtype=bool)
    exported, expected = torch.from_numpy(raw), raw
    for transform in frozen:
        expected = transform.step(expected, first)
        if transform is not frozen[-1] and before == "transforms:time-feature":
            exported, _ = transform.memory_module()(exported, torch.zeros(2, 1), torch.from_numpy(first))
        elif before != "transforms:last-step":  # which no program has
            exported = transform.observation_module()(exported)
    assert expected[1, 0] - expected[0, 0] == pytest.approx(2, abs=0.1)
    if before != "transforms:last-step":
        np.testing.assert_array_equal(exported.numpy(), expected)


def test_statistics_in_single_precision_of_an_earlier_checkpoint_are_taken():
    transform = ObservationNorm(ObservationNorm.Config(), Context.alone("norm"))
    transform.observation_space(gymnasium.spaces.Box(-1, 1, (2,)))
    state = {"mean": np.array([3, -1], np.float32), "scale": np.array([0.5, 4], np.float32)}
    transform.load_state_dict(state)
    assert transform.step(np.array([[5, -1.25]]), np.ones(1, dtype=bool)).tolist() == [[1, -1]]
    assert (transform.loc.tolist(), transform.scale.tolist()) == ([3, -1], [2, 0.25])
    again = ObservationNorm(ObservationNorm.Config(), Context.alone("norm"))
    again.load_state_dict(transform.state_dict())
    assert again.scale.tolist() == [2, 0.25]


class Dated(gymnasium.ObservationWrapper):
    """The seconds as a leaf of a dict."""

    def __init__(self, dtype):
        super().__init__(Clock(dtype))
        self.observation_space = gymnasium.spaces.Dict({"time": self.env.observation_space})

    def observation(self, observation):
        return {"time": observation}


gymnasium.register("Dated-v0", Dated)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("dtype", "rounds"), [("float64", True), ("int64", False)])
def test_a_leaf_that_single_precision_rounds_is_named(norm, dtype, rounds, caplog):
    env = {"use": "gymnasium", "id": "Dated-v0", "max_episode_steps": 10, "kwargs": {"dtype": dtype}}
    transform = [{"use": norm, "leaf": "time"}]
    make_run(sections={"env": env, "transform": transform, "model": {"use": "mlp", "hidden": [4]}})
    assert ("numbers of 1.7e+09 in single precision, in which they are multiples of 128" in caplog.text) == rounds
