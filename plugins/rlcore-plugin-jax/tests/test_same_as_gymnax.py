"""Each env goes on as gymnax's own loop does, with the same keys."""

import dataclasses

import numpy as np
import pytest
import torch
from rlcore_plugin_jax.env import Config, make

from rlcore.types import Context

jax = pytest.importorskip("jax")
gymnax = pytest.importorskip("gymnax")
ENVS, SEED = 6, 11


@jax.jit
def split(keys):
    keys = jax.vmap(jax.random.split)(keys)
    return keys[:, 0], keys[:, 1]


@pytest.mark.parametrize(
    ("name", "limit", "steps"),
    [
        ("CartPole-v1", 15, 120),
        pytest.param("CartPole-v1", 500, 120, marks=pytest.mark.slow),
        pytest.param("Pendulum-v1", 30, 70, marks=pytest.mark.slow),
        pytest.param("Breakout-MinAtar", 12, 60, marks=pytest.mark.slow),
    ],
)
def test_every_step_is_that_of_gymnax(name, limit, steps):
    """Through ends of both kinds, into the next episodes; other programs may round otherwise."""
    env = make(Config(id=name, num_envs=ENVS, max_episode_steps=limit), Context.alone("tests"))
    original, params = gymnax.make(name)
    params = dataclasses.replace(params, max_steps_in_episode=limit)
    step_original = jax.jit(jax.vmap(lambda *arrays: original.step(*arrays, params)))
    step_alone = jax.jit(jax.vmap(lambda *arrays: original.step_env(*arrays, params)))
    keys = jax.vmap(jax.random.PRNGKey)(SEED + jax.numpy.arange(ENVS))
    keys, now = split(keys)
    expected, state = jax.jit(jax.vmap(original.reset, (0, None)))(now, params)
    np.testing.assert_array_equal(env.reset_tensors(SEED).numpy(), expected)
    lengths, ends = np.zeros(ENVS, int), set()
    for action in actions(env, steps):
        keys, now = split(keys)
        last = step_alone(split(now)[0], state, action.numpy())[0]
        expected, state, reward, done, _ = step_original(now, state, action.numpy())
        step, lengths = env.step_tensors(action), lengths + 1
        np.testing.assert_allclose(step.observation.numpy(), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(step.final_observation.numpy(), last, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(step.reward.numpy(), np.asarray(reward).reshape(-1), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal((step.terminated | step.truncated).numpy(), done)
        assert not (step.terminated & step.truncated).any()
        assert not (step.truncated.numpy() & (lengths < limit)).any()
        assert np.asarray(done)[lengths == limit].all()
        ends |= {kind for kind in ("terminated", "truncated") if getattr(step, kind).any()}
        lengths[np.asarray(done)] = 0
    assert ends
    assert limit != 15 or len(ends) == 2


def actions(env, steps):
    env.spec.action_space.seed(0)
    for _ in range(steps):
        yield torch.as_tensor(np.stack([env.spec.action_space.sample() for _ in range(ENVS)]))


def test_a_seed_of_63_bits_is_a_key_of_its_own():
    env = make(Config(id="CartPole-v1", num_envs=2), Context.alone("tests"))
    high, low = env.reset_tensors(2**62 + 7), env.reset_tensors(7)
    assert not torch.equal(high, low)
    assert torch.equal(env.reset_tensors(2**62 + 7), high)
