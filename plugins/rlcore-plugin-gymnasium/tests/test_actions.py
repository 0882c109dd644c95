"""Envs that write into the actions that they are given: neither the caller nor the next repetition sees it."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, MultiDiscrete
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_testing.contracts.data import actions


class Writing(gymnasium.Env):
    """Walks as its actions say, and scales them in their own array.

    Args:
        copies: whether it does so in a copy.
        choices: whether actions are choices.
    """

    observation_space = Box(-99, 99, (2,), np.float32)

    def __init__(self, copies=False, choices=False):
        self.copies = copies
        self.action_space = MultiDiscrete([5, 5]) if choices else Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.place.copy(), {}

    def step(self, action):
        if self.copies:
            action = action.copy()
        action[:] = action / 2
        self.steps += 1
        self.place = (0.9 * self.place + action).astype(np.float32)
        return self.place.copy(), -float(np.abs(self.place).sum()), self.steps >= 9, False, {}


class WritingTogether(gymnasium.vector.VectorEnv):
    """The same in a vector form."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs=1, copies=False, choices=False):
        self.envs = [Writing(copies, choices) for _ in range(num_envs)]
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = Writing.observation_space, self.envs[0].action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.over = np.zeros(num_envs, bool)

    def reset(self, *, seed=None, options=None):
        self.over[:] = False
        seeds = range(seed, seed + self.num_envs) if seed is not None else [None] * self.num_envs
        return np.stack([env.reset(seed=own)[0] for env, own in zip(self.envs, seeds, strict=True)]), {}

    def step(self, actions):
        steps = [
            (env.reset()[0], 0.0, False) if over else env.step(action)[:3]
            for env, over, action in zip(self.envs, self.over, actions, strict=True)
        ]
        places, rewards, self.over = (np.array(column) for column in zip(*steps, strict=True))
        return places.astype(np.float32), rewards.astype(np.float64), self.over, np.zeros(self.num_envs, bool), {}


@pytest.fixture(autouse=True, scope="module")
def _registered():
    gymnasium.register("actions/Writing-v0", Writing, vector_entry_point=WritingTogether)
    yield
    del gymnasium.registry["actions/Writing-v0"]


WAYS = {
    "one by one": {"vectorization": "serial"},
    "repeated": {"vectorization": "serial", "frame_skip": 2},
    "together": {"vectorization": "native"},
}


def made(**config):
    return EnvContract.of("gymnasium", {"id": "actions/Writing-v0", "num_envs": 2}).env(**config)


@pytest.mark.parametrize("choices", [False, True])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_steps_are_those_of_an_env_that_copies(way, choices):
    writing, copying = (made(**way, kwargs={"choices": choices, "copies": copies}) for copies in (False, True))
    assert np.array_equal(writing.reset(seed=1), copying.reset(seed=1))
    for action in actions(copying, 30):
        own = action.copy()
        one, other = writing.step(own), copying.step(action)
        assert np.array_equal(own, action)
        assert np.array_equal(one.observation, other.observation)
        assert np.array_equal(one.reward, other.reward)


@pytest.mark.parametrize("way", [WAYS["one by one"], WAYS["repeated"]], ids=["one by one", "repeated"])
def test_a_running_episode_is_played_again_with_the_actions_of_the_policy(way):
    first, second, third = (made(**way) for _ in range(3))
    first.reset(seed=1)
    plan = list(actions(first, 8))
    for action in plan[:3]:
        first.step(action)
    second.load_state_dict(first.state_dict())
    third.load_state_dict(second.state_dict())  # of what was played again itself
    for action in plan[3:]:
        expected = first.step(action).observation.copy()
        assert np.array_equal(second.step(action).observation, expected)
        assert np.array_equal(third.step(action).observation, expected)
