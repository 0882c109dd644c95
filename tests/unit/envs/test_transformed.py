"""Which observations a transform hears to be the first of an episode, in an env that is evaluated or fitted on."""

import numpy as np
import pytest
from rlcore_plugin_testing.toy import ToyEnv

from rlcore.envs.transformed import TransformedEnv


class FirstRecorder:
    def __init__(self):
        self.firsts = []

    def observation_space(self, space):
        return space

    def step(self, observation, first):
        self.firsts.append(first.tolist())
        return observation

    def final(self, observation, env_index):
        return observation

    def frozen(self):
        return self


@pytest.mark.parametrize(("mode", "later"), [("same_step", 0), ("next_step", 1)])
def test_an_observation_begins_an_episode_after_a_reset_and_an_end_and_nowhere_else(mode, later):
    recorder = FirstRecorder()
    env = TransformedEnv(ToyEnv(ToyEnv.Config(num_envs=1, episode_lengths=[3], reset_mode=mode)), [recorder])
    for _ in range(2):
        env.reset(seed=0)
        for _ in range(3 + later):
            env.step(np.zeros((1, 1), dtype=np.float32))
    begins = [[True]] + [[False]] * (2 + later) + [[True]]
    assert recorder.firsts == begins * 2
