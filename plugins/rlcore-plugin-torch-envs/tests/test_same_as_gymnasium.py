"""Each env goes on as Gymnasium's from the same state by the same action."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_torch_envs.env import CLASSIC_CONTROL

# of these Gymnasium keeps the state, or the torque, in float32
ROUNDED = {"MountainCarContinuous-v0": 1e-6, "Pendulum-v1": 1e-7}


def numbers_of(state):
    return torch.stack(list(state.values()), -1).numpy()


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_spaces_and_limit_are_those_of_gymnasium(name):
    bench = EnvContract.of("torch-envs", {"id": name})
    spec, original = bench.make(bench.bench()).spec, gymnasium.make(name)
    assert spec.observation_space == original.observation_space
    assert spec.action_space == original.action_space
    assert spec.max_episode_steps == original.spec.max_episode_steps


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_every_step_is_that_of_gymnasium(name):
    """Also where episodes terminate, and where they are cut off."""
    bench = EnvContract.of("torch-envs", {"id": name, "precision": "float64", "num_envs": 8, "max_episode_steps": 90})
    env, original = bench.make(bench.bench()), gymnasium.make(name).unwrapped
    original.reset(seed=0)
    env.action_space.seed(1)
    env.reset(seed=1)
    ends = 0
    for _ in range(200):
        before, lengths = numbers_of(env.moment.state), env.moment.length.tolist()
        actions = np.array([env.action_space.sample() for _ in range(8)])
        step, after = env.step(actions), numbers_of(env.moment.state)
        for index, action in enumerate(actions):
            original.state = before[index]
            original.steps_beyond_terminated = None
            observation, reward, terminated, _, _ = original.step(action)
            assert step.terminated[index] == terminated
            assert step.truncated[index] == (lengths[index] + 1 == 90 and not terminated)
            np.testing.assert_allclose(step.reward[index], reward, rtol=0, atol=ROUNDED.get(name, 1e-12))
            seen = step.final_observation.get(index, step.observation[index])
            np.testing.assert_allclose(seen, observation, rtol=0, atol=1e-6)
            if index not in step.final_observation:
                np.testing.assert_allclose(after[index], original.state, rtol=0, atol=ROUNDED.get(name, 1e-12))
        ends += len(step.final_observation)
    assert ends > 0
