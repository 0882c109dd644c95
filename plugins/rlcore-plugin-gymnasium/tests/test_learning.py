"""Wrappers that learn while training: named with the transform that evaluations and agents have too."""

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_gymnasium.learning import warning_on
from rlcore_plugin_testing import make_run

HERE = __name__


class Tracked(gymnasium.ObservationWrapper):
    """Learns a mean, and holds it in attributes of its own."""

    def __init__(self, env):
        super().__init__(env)
        self._running_mean, self._running_std, self._count = np.zeros(4), np.ones(4), 0

    def observation(self, observation):
        self._count += 1
        self._running_mean = self._running_mean + (observation - self._running_mean) / self._count
        return (observation - self._running_mean).astype(np.float32)


class Welford:
    """Statistics in the words of another library."""

    __slots__ = ("m2", "mean", "n")

    def __init__(self):
        self.mean, self.m2, self.n = 0.0, 0.0, 0


class ScaledReward(gymnasium.RewardWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.seen = Welford()

    def reward(self, reward):
        return reward


class Remembering(gymnasium.Wrapper):
    """Saves a state of its own."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Standardised(gymnasium.ObservationWrapper):
    """Learns nothing: mean and deviation are given."""

    def __init__(self, env):
        super().__init__(env)
        self.mean, self.std = np.zeros(4), np.ones(4)

    def observation(self, observation):
        return ((observation - self.mean) / self.std).astype(np.float32)


class Bandit(gymnasium.Env):
    """An env with a mean, a deviation and a number, none of which it learns."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))

    def __init__(self):
        self.mean, self.std, self.n = 0.0, 1.0, 2


LEARNING = [
    ("NormalizeObservation", "transforms:running-observation-norm"),
    ("NormalizeReward", "transforms:reward-norm"),
    (f"{HERE}:Tracked", "transforms:running-observation-norm"),
    (f"{HERE}:ScaledReward", "transforms:reward-norm"),
    (f"{HERE}:Remembering", "transforms:running-observation-norm"),
]


def run_with(*wrappers, id="CartPole-v1"):
    env = {"use": "gymnasium", "id": id, "wrappers": list(wrappers)}
    return make_run(sections={"env": env, "transform": [{"use": "transforms:running-observation-norm"}]})


@pytest.mark.parametrize(("wrapper", "transform"), LEARNING)
def test_a_wrapper_that_learns_is_named_once_before_the_first_frame(wrapper, transform, caplog):
    run = run_with(wrapper)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said.startswith(f"{wrapper.rpartition(':')[2]} in the env: ")
    assert transform in said
    run.trainer.evaluate()
    assert caplog.text.count("in the env: what is learnt") == 1


def test_a_wrapper_within_an_env_of_ones_own_is_found(caplog, monkeypatch):
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("Wrapped-v0", lambda: Tracked(gymnasium.make("CartPole-v1")))
    run_with(id="Wrapped-v0")
    assert "Tracked in the env" in caplog.text


@pytest.mark.parametrize("wrapper", ["RecordEpisodeStatistics", "ClipReward", f"{HERE}:Standardised"])
def test_a_wrapper_that_learns_nothing_is_not_named(wrapper, caplog):
    arguments = {"min_reward": 0.0} if wrapper == "ClipReward" else {}
    run_with({"use": wrapper, **arguments})
    assert "learnt" not in caplog.text


def test_an_env_that_has_a_mean_is_not_named():
    assert warning_on(Bandit()) is None
