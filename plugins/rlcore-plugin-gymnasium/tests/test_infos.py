"""Infos that envs tell of: those that Gymnasium gives, of each env its own."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from rlcore_plugin_testing import make_run

ID = "infos/Counting-v0"


class Counting(CartPoleVectorEnv):
    """Tells of a number that all have, of one that the first env has, and of a dict."""

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed, options=options)
        self.count = np.zeros(self.num_envs, dtype=np.int64)
        return observation, self._infos()

    def step(self, action):
        self.count = np.where(self.prev_done, 0, self.count + 1)
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, self._infos()

    def _infos(self):
        numbers = np.arange(self.num_envs)
        deep = {"count": 2 * self.count, "_count": numbers >= 0}
        others = {"deep": deep, "_deep": numbers >= 0, "none": deep, "_none": numbers < 0}
        return {"count": self.count, "own": numbers, "_own": numbers == 0, **others}


@pytest.fixture
def env():
    """Three envs in their own vector form."""
    gymnasium.register(ID, vector_entry_point=Counting, entry_point="gymnasium.envs.classic_control:CartPoleEnv")
    section = {"use": "gymnasium", "id": ID, "num_envs": 3, "vectorization": "native"}
    yield make_run("collector.frames_per_batch=24", sections={"env": section}).trainer.collector._env
    gymnasium.registry.pop(ID)


def test_each_env_of_a_vector_form_is_told_of_its_own(env):
    told = []
    env.tell_infos(lambda index, infos, first: told.append((index, dict(infos), first)))
    env.reset(seed=0)
    assert told == [
        (0, {"count": 0, "own": 0, "deep": {"count": 0}}, True),
        (1, {"count": 0, "deep": {"count": 0}}, True),
        (2, {"count": 0, "deep": {"count": 0}}, True),
    ]
    rows = {index: [] for index in range(3)}
    for _ in range(60):
        told.clear()
        over = env.step(np.ones(3, dtype=np.int64))
        ended = over.terminated | over.truncated
        for index, infos, first in told:
            rows[index].append((first, int(infos["count"]), bool(ended[index])))
    for steps in rows.values():
        assert sum(first for first, _, _ in steps) > 3
        for (_, before, ended), (first, count, _) in pairwise(steps):
            assert first == ended
            assert count == (0 if first else before + 1)


def test_what_follows_a_loaded_state_is_told_as_a_reset_where_it_is_one(env):
    told = []
    env.tell_infos(lambda index, infos, first: told.append(first))
    env.reset(seed=0)
    while not env.step(np.ones(3, dtype=np.int64)).terminated[0]:
        pass
    state = env.state_dict()
    told.clear()
    env.step(np.ones(3, dtype=np.int64))
    expected = list(told)
    env.step(np.ones(3, dtype=np.int64))
    env.load_state_dict(state)
    told.clear()
    env.step(np.ones(3, dtype=np.int64))
    assert told == expected
    assert told[0]
