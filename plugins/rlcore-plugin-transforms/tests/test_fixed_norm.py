"""Observation normalisation: its statistics."""

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing.contracts import TransformContract

from rlcore.errors import ConfigError, EnvError

NORM = TransformContract.of("gymnasium:observation-norm", {"frames": 50})


def test_the_frames_it_saw_have_mean_zero_and_deviation_one():
    context = NORM.bench()
    transform, env = NORM.make(context), context.env
    step, seen = env.step, []

    def watched(action):
        taken = step(action)
        seen.append(taken.observation.copy())
        return taken

    env.step = watched
    transform.fit(env)
    frames = np.concatenate([transform.step(frame, np.zeros(len(frame), dtype=bool)) for frame in seen])
    np.testing.assert_allclose(frames.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(frames.std(0), 1, rtol=1e-4)


def test_a_constant_observation_stays_finite():
    context = NORM.bench()
    transform = NORM.make(context)
    frozen = context.env
    frozen.step = lambda action: type("Step", (), {"observation": np.full((2, 3), 4.0)})()
    transform.fit(frozen)
    assert transform.step(np.full((2, 3), 4.0), np.ones(2, dtype=bool)).tolist() == [[0.0] * 3] * 2


def test_statistics_that_are_not_finite_are_an_error():
    context = NORM.bench()
    broken = context.env
    broken.step = lambda action: type("Step", (), {"observation": np.full((2, 3), np.nan)})()
    with pytest.raises(EnvError, match="not finite"):
        NORM.make(context).fit(broken)


def test_the_seed_of_the_run_decides():
    runs = [{"name": "toy", "seed": seed, "total_frames": 64, "device": "cpu"} for seed in (1, 1, 2)]
    states = [NORM.make(NORM.bench(around={"run": run})).state_dict()["mean"].tolist() for run in runs]
    assert states[0] == states[1]
    assert states[0] != states[2]


def test_needs_a_box():
    with pytest.raises(ConfigError, match="Box"):
        NORM.make(NORM.bench()).observation_space(gymnasium.spaces.Discrete(3))
