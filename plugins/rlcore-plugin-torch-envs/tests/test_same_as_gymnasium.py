"""Each env goes on as Gymnasium's from the same state by the same action."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_torch_envs.env import CLASSIC_CONTROL

from rlcore.errors import ConfigError, EnvError

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
def test_pictures_are_those_of_gymnasium(name):
    """Also that of an end, though the next episode has begun."""
    keys = {"id": name, "precision": "float64", "num_envs": 2, "max_episode_steps": 3, "render_mode": "rgb_array"}
    bench, original = EnvContract.of("torch-envs", keys), gymnasium.make(name, render_mode="rgb_array").unwrapped
    env = bench.make(bench.bench())
    assert env.render_fps == original.metadata["render_fps"]
    original.reset(seed=0)
    env.reset(seed=1)
    for _ in range(4):
        before, action = numbers_of(env.moment.state), env.action_space.sample()
        for index, row in enumerate(before):
            original.state = row
            original.steps_beyond_terminated = None
            original.step(action)
            original.last_u = None  # the arrow of Pendulum's torque is no part of the state
            if index == 0:
                expected = original.render()
        env.step(np.stack([action, action]))
        np.testing.assert_array_equal(env.render([0])[0], expected)
    assert env.render().shape == (2, *expected.shape)
    env.close()


@pytest.mark.parametrize("observed", [[0, 2], [3]])
def test_a_part_of_the_numbers_may_be_observed(observed):
    keys = {"id": "CartPole-v1", "num_envs": 4}
    whole, part = (EnvContract.of("torch-envs", more) for more in (keys, {**keys, "observed": observed}))
    whole, part = whole.make(whole.bench()), part.make(part.bench())
    assert part.spec.observation_space.shape == (len(observed),)
    np.testing.assert_array_equal(whole.reset(seed=4)[:, observed], part.reset(seed=4))
    for _ in range(30):
        action = torch.ones(4, dtype=torch.int64)
        step, expected = part.step_tensors(action), whole.step_tensors(action)
        assert torch.equal(step.observation, expected.observation[:, observed])
        assert torch.equal(step.final_observation, expected.final_observation[:, observed])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"id": "CartPole-v1", "observed": [0, 4]}, r"observed = \[0, 4\]: are some of the numbers 0 to 3"),
        ({"id": "CartPole-v1", "observed": [1, 1]}, "each once"),
        ({"id": "CartPole-v1", "observed": [-1]}, "numbers 0 to 3"),
        ({"id": "MinAtar/Breakout-v1", "observed": [0]}, "has images; leave it out"),
    ],
)
def test_what_cannot_be_observed_is_refused(keys, expected):
    bench = EnvContract.of("torch-envs", keys)
    with pytest.raises(ConfigError, match=expected):
        bench.make(bench.bench())


def test_an_env_that_was_not_made_to_render_says_so():
    bench = EnvContract.of("torch-envs", {"id": "CartPole-v1"})
    env = bench.make(bench.bench())
    env.reset(seed=0)
    with pytest.raises(EnvError, match="made without render_mode = 'rgb_array'"):
        env.render()


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
