"""Wrappers that the config names: what they change, their arguments, and their state in the middle of an episode."""

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing import make_run, through_checkpoint
from rlcore_plugin_testing.compare import difference

from rlcore.envs import inexact_env
from rlcore.errors import ConfigError

HERE = __name__


class Doubled(gymnasium.ObservationWrapper):
    """Observations times a factor."""

    def __init__(self, env, factor=2.0):
        super().__init__(env)
        self.factor = factor

    def observation(self, observation):
        return (self.factor * observation).astype(np.float32)


class NoEnv:
    def __init__(self, env):
        pass


def halved(reward):
    return reward / 2


def env_of(*wrappers, id="CartPole-v1", **config):
    section = {"use": "gymnasium", "id": id, "wrappers": list(wrappers), **config}
    return make_run(sections={"env": section}).trainer.collector._env


def test_statistics_of_all_episodes_are_saved():
    saved, other = (env_of("NormalizeObservation", "NormalizeReward", max_episode_steps=9) for _ in range(2))
    assert inexact_env(saved) is None
    saved.reset(seed=1)
    other.reset(seed=2)
    for _ in range(25):
        saved.step(np.zeros(1, dtype=np.int64))
    other.load_state_dict(through_checkpoint(saved.state_dict()))
    for action in (1, 0, 1, 1, 0):
        one, two = (env.step(np.array([action])) for env in (saved, other))
        assert difference(one[:4], two[:4]) is None


def test_the_first_wrapper_is_inside():
    env = env_of({"use": "FrameStackObservation", "stack_size": 3}, "FlattenObservation")
    assert env.spec.observation_space.shape == (12,)


def test_a_wrapper_of_ones_own_takes_arguments():
    seeds = [env.reset(seed=3) for env in (env_of({"use": f"{HERE}:Doubled", "factor": 3.0}), env_of())]
    np.testing.assert_allclose(seeds[0], 3 * seeds[1], rtol=1e-6)


def test_lists_become_tuples_and_texts_functions():
    env = env_of(
        {"use": "ReshapeObservation", "shape": [2, 2]},
        "FlattenObservation",
        {"use": "TransformReward", "func": f"{HERE}:halved"},
    )
    env.reset(seed=0)
    assert env.step(np.zeros(1, dtype=np.int64)).reward.tolist() == [0.5]


def test_arrays_are_given_as_lists():
    env = env_of({"use": "RescaleAction", "min_action": [-1.0], "max_action": [1.0]}, id="Pendulum-v1")
    space = env.spec.action_space
    assert (space.low.tolist(), space.high.tolist()) == ([-1.0], [1.0])


def test_a_time_limit_bounds_the_episodes():
    env = env_of({"use": "TimeLimit", "max_episode_steps": 7}, id="Pendulum-v1")
    assert env.spec.max_episode_steps == 7
    assert env_of("FlattenObservation", id="Pendulum-v1").spec.max_episode_steps == 200


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ("FlatenObservation", r"\[env\] wrappers\[0\] = 'FlatenObservation'.*did you mean 'FlattenObservation'"),
        ("no_such_module:Thing", r"\[env\] wrappers.*no_such_module"),
        (f"{HERE}:Doubeld", r"did you mean 'Doubled'"),
        (f"{HERE}:NoEnv", r"NoEnv, which is no gymnasium\.Env"),
        ({"use": "TimeLimit", "max_steps": 3}, r"unknown argument 'max_steps'.*it takes max_episode_steps"),
        ("TimeLimit", r"needs max_episode_steps: write it as a table"),
        ({"use": "TimeLimit", "max_episode_steps": -1}, r"cannot be put around .*: .*Error"),
        ({"max_episode_steps": 3}, r"env.*names no wrapper"),
    ],
)
def test_what_is_no_wrapper_is_refused_before_the_first_frame(wrapper, message):
    with pytest.raises(ConfigError, match=message):
        env_of(wrapper)


def test_an_env_in_its_vector_form_is_not_wrapped():
    with pytest.raises(ConfigError, match=r"'native' cannot wrap each env; leave out wrappers"):
        env_of("FlattenObservation", vectorization="native")
    assert type(env_of("FlattenObservation", num_envs=16)).__name__ == "SerialEnv"
