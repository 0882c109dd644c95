"""Observation normalisation: the contract of transforms, and its statistics."""

import numpy as np
import pytest

from rlcore.errors import ConfigError, EnvError
from rlcore.testing.contracts import TransformContract


class TestObservationNorm(TransformContract):
    use = "gymnasium:observation-norm"
    config = {"frames": 50}

    def test_random_frames_have_mean_zero_and_deviation_one(self):
        context = self.bench(around={"env": {"use": "gymnasium", "id": "Pendulum-v1"}})
        transform = self.make(context, frames=2000)
        env = context.part("make_env")(1)
        env.action_space = env.spec.action_space
        env.reset(seed=3)
        seen = []
        for _ in range(2000):
            action = env.spec.action_space.sample()[None]
            seen.append(np.array(transform.step(env.step(action).observation, np.zeros(1, dtype=bool))))
        frames = np.concatenate(seen)
        assert np.abs(frames.mean(0)).max() < 0.5
        assert np.abs(frames.std(0) - 1).max() < 0.3

    def test_a_constant_observation_stays_finite(self):
        context = self.bench()
        transform = self.make(context)
        frozen = context.env
        frozen.step = lambda action: type("Step", (), {"observation": np.full((2, 3), 4.0)})()
        transform.fit(frozen)
        assert transform.step(np.full((2, 3), 4.0), np.ones(2, dtype=bool)).tolist() == [[0.0] * 3] * 2

    def test_statistics_that_are_not_finite_are_an_error(self):
        context = self.bench()
        broken = context.env
        broken.step = lambda action: type("Step", (), {"observation": np.full((2, 3), np.nan)})()
        with pytest.raises(EnvError, match="not finite"):
            self.make(context).fit(broken)

    def test_the_seed_of_the_run_decides(self):
        runs = [{"name": "toy", "seed": seed, "total_frames": 64, "device": "cpu"} for seed in (1, 1, 2)]
        states = [self.make(self.bench(around={"run": run})).state_dict()["mean"].tolist() for run in runs]
        assert states[0] == states[1]
        assert states[0] != states[2]

    def test_needs_a_box(self):
        import gymnasium

        with pytest.raises(ConfigError, match="Box"):
            self.make(self.bench()).observation_space(gymnasium.spaces.Discrete(3))


class TestObservationNormOfDoubles(TransformContract):
    """MuJoCo observes in double precision; the policy sees single precision."""

    use = "gymnasium:observation-norm"
    config = {"frames": 20}
    around = {"env": {"use": "gymnasium", "id": "InvertedDoublePendulum-v5"}}
