"""A cut is no end: of an env in Brax's form, which calls both of them `done` and tells of cuts in its infos."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_jax.env import Config, make
from rlcore_plugin_testing.contracts import EnvContract

from rlcore.types import Context

jax = pytest.importorskip("jax")
ID, KWARGS, ENVS, SEED, GAMMA = "jax_envs:Brax", {"truncates": True, "bound": 0.6}, 8, 5, 0.5
NAMES = ("observation", "reward", "terminated", "truncated", "final_observation")


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def chosen(where, new, old):
    """Return the rows of `new` where `where` says so, and elsewhere those of `old`."""
    return np.where(np.expand_dims(where, tuple(range(1, old.ndim))), new, old)


def stepped(keys, states, actions):
    """Step each env of Brax's form as its own loop does, and yield what `TensorStep` names."""
    env = sys.modules["jax_envs"].Brax(**KWARGS)
    split, step, reset = (jax.jit(jax.vmap(call)) for call in (jax.random.split, env.step, env.reset))
    for action in actions:
        keys, now = np.moveaxis(np.array(split(keys)), 1, 0)
        moved, begun = step(states, action), reset(split(now)[:, 1])
        done, truncated = (np.array(flag, bool) for flag in (moved.done, moved.info["truncation"]))
        assert done[truncated].all(), "Brax's wrapper of episodes calls a cut done too"
        states = jax.tree.map(partial(chosen, done), begun, moved)
        yield np.array(states.obs), np.array(moved.reward), done & ~truncated, truncated, np.array(moved.obs)


@pytest.mark.slow
def test_every_step_is_that_of_the_env():
    env = make(Config(id=ID, num_envs=ENVS, kwargs=KWARGS), Context.alone("tests"))
    env.reset_tensors(SEED)
    actions = np.random.default_rng(0).uniform(-1, 1, (40, ENVS, 1)).astype(np.float32)
    expected = list(stepped(env._carry.key, env._carry.state, actions))
    for action, arrays in zip(actions, expected, strict=True):
        for name, found, array in zip(NAMES, env.step_tensors(torch.from_numpy(action)), arrays, strict=True):
            np.testing.assert_allclose(found.numpy(), array, rtol=1e-6, atol=1e-6, err_msg=name)
    terminated, truncated = (np.array([arrays[at] for arrays in expected]) for at in (2, 3))
    assert terminated.sum() > 10
    assert truncated.sum() > 10
    assert not (terminated & truncated).any()


@pytest.mark.parametrize("use", ["device", pytest.param("local", marks=pytest.mark.slow)])
def test_a_cut_is_worth_what_its_last_observation_is_and_an_end_nothing(use):
    around = {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae", "gamma": GAMMA, "lmbda": 0.0},
        "collector": {"use": use, "frames_per_batch": 12 * ENVS},
    }
    trainer = EnvContract.of("jax", {"id": ID, "num_envs": ENVS, "kwargs": KWARGS}, around).run().trainer
    collector = trainer.parts.collector
    collector.collect()
    env = collector._context.env
    keys, states = env._carry.key, env._carry.state
    batch = collector.collect()
    actions = batch["action"].numpy().swapaxes(0, 1)
    columns = zip(*stepped(keys, states, actions), strict=True)
    _, reward, terminated, truncated, last = (torch.from_numpy(np.stack(column)) for column in columns)
    trainer.parts.estimator(batch)
    with torch.no_grad():
        following = collector._context.model.critic(last).squeeze(-1)
    targets = batch["value_target"].squeeze(-1).T
    torch.testing.assert_close(targets, reward + GAMMA * following * ~terminated, rtol=1e-5, atol=1e-5)
    for ended in (terminated, truncated):
        assert following[ended].abs().max() > 0.1, "values that tell a cut from an end"
    for name, flags in (("terminated", terminated), ("truncated", truncated)):
        assert torch.equal(batch["next", name].squeeze(-1).T, flags)
