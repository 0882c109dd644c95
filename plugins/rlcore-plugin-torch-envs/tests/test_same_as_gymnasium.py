"""Each env goes on as Gymnasium's from the same state by the same action."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing.contracts import EnvContract

from rlcore_plugin_torch_envs.env import _ENVS

# Gymnasium keeps the state of this one in float32
ROUNDED = {"MountainCarContinuous-v0": 1e-6}


def numbers_of(state):
    return torch.stack(list(state.values()), -1).numpy()


@pytest.mark.parametrize("name", _ENVS)
def test_every_step_is_that_of_gymnasium(name):
    bench = EnvContract.of("torch-envs", {"id": name, "precision": "float64", "num_envs": 16})
    env, original = bench.make(bench.bench()), gymnasium.make(name)
    assert env.spec.observation_space == original.observation_space
    assert env.spec.action_space == original.action_space
    assert env.spec.max_episode_steps == original.spec.max_episode_steps
    original.reset(seed=0)
    env.action_space.seed(1)
    env.reset(seed=1)
    tolerance, ends = ROUNDED.get(name, 1e-12), 0
    for _ in range(600):
        before, lengths = numbers_of(env._state), env._length.tolist()
        actions = np.array([env.action_space.sample() for _ in range(16)])
        step = env.step(actions)
        final = env.observation(env._state).numpy()
        for index, action in enumerate(actions):
            original.unwrapped.state = before[index]
            original.unwrapped.steps_beyond_terminated = None
            observation, reward, terminated, _, _ = original.unwrapped.step(action)
            assert step.terminated[index] == terminated
            assert step.truncated[index] == (lengths[index] + 1 == env.spec.max_episode_steps and not terminated)
            np.testing.assert_allclose(step.reward[index], reward, rtol=0, atol=max(tolerance, 1e-7))
            seen = step.final_observation.get(index, final[index])
            np.testing.assert_allclose(seen, observation, rtol=0, atol=1e-6)
        ends += int((step.terminated | step.truncated).sum())
    assert ends > 0
