"""Arrays and tensors share their memory, and neither side writes to what the other one reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_jax.env import Config, make
from rlcore_plugin_testing.contracts import EnvContract

from rlcore.types import Context

jax = pytest.importorskip("jax")
is_key = pytest.importorskip("rlcore_plugin_jax.arrays").is_key


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def made(env_id="jax_envs:Drift", num_envs=64):
    return make(Config(id=env_id, num_envs=num_envs), Context.alone("tests"))


def recorded(env):
    """Have an env keep the arrays that go into its steps and come out of them, with copies of what they hold then."""
    kept = []
    stepped = env._step_all

    def step(*arrays):
        after = stepped(*arrays)
        kept.extend((array, np.array(array)) for array in jax.tree.leaves((arrays[1], after)) if not is_key(array))
        return after

    env._step_all = step
    return kept


def test_nothing_is_copied_on_its_way():
    env = made()
    env.reset_tensors(0)
    kept = recorded(env)
    action = torch.rand(64, 2)
    step = env.step_tensors(action)
    pointers = [array.unsafe_buffer_pointer() for array, _ in kept]
    assert pointers[0] == action.data_ptr()
    assert [tensor.data_ptr() for tensor in step] == pointers[-len(step) :]


def test_actions_in_any_memory_are_the_same_actions():
    """A row of storage begins anywhere, and may be a column of it."""
    action = torch.rand(3, 2)
    across = torch.empty(2, 3).copy_(action.T).T
    inside = torch.empty(7, 2)[1:4].copy_(action)
    steps = []
    for given in (action, across, inside):
        env = made(num_envs=3)
        env.reset_tensors(0)
        steps.append(env.step_tensors(given).observation)
    assert torch.equal(steps[0], steps[1])
    assert torch.equal(steps[0], steps[2])


def test_a_step_has_read_its_actions_when_it_returns():
    """JAX goes on in threads of its own, after its call has returned."""
    env = made("jax_envs:Slow", num_envs=2)
    env.reset_tensors(0)
    action = torch.zeros(2, 2)
    env.step_tensors(action)
    for value in (0.25, 0.5, 0.75):
        action.fill_(value)
        step = env.step_tensors(action)
        action.fill_(-1)
        assert torch.equal(step.observation, torch.full((2, 2), value))
        assert torch.equal(env.state_dict()["state.position"], torch.full((2, 2), value))


def test_a_step_and_a_state_keep_their_values():
    """The next steps write to other memory."""
    env = made()
    env.reset_tensors(0)
    action = torch.rand(64, 2)
    step, state = env.step_tensors(action), env.state_dict()
    before = [tensor.clone() for tensor in (*step, *state.values())]
    for _ in range(20):
        env.step_tensors(action)
    for tensor, copy in zip((*step, *state.values()), before, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("use", ["device", "local"])
def test_a_run_writes_to_no_array_of_the_env(use):
    """Nor does what is done to the tensors of a state."""
    around = {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "collector": {"use": use, "frames_per_batch": 64},
        "transform": [] if use == "device" else [{"use": "transforms:running-observation-norm"}],
    }
    trainer = EnvContract.of("jax", {"id": "jax_envs:Drift", "num_envs": 4}, around).run().trainer
    env = trainer.parts.collector._context.env
    kept = recorded(env)
    trainer.train()
    for tensor in env.state_dict().values():
        tensor.zero_()
    assert len(kept) > 100
    for array, copy in kept:
        np.testing.assert_array_equal(np.array(array), copy)


def test_a_step_is_compiled_once():
    env = made(num_envs=5)
    for seed in (0, None, 3):
        env.reset_tensors(seed)
        for _ in range(12):
            env.step_tensors(torch.rand(5, 2))
        env.load_state_dict(env.state_dict())
    assert (env._begin_all._cache_size(), env._step_all._cache_size()) == (1, 1)


def test_programs_are_compiled_while_the_watchdog_waits():
    """That takes minutes for physics; at a step nothing is compiled, so that one that hangs is found."""
    env, paused = made(num_envs=2), []
    for name in ("_begin", "_step"):
        traced = getattr(env._single, name.strip("_"))

        def noted(*arrays, traced=traced):
            paused.append(env._heart.paused)
            return traced(*arrays)

        setattr(env._single, name.strip("_"), noted)
    env.reset_tensors(0)
    assert paused
    assert all(paused)
    count = len(paused)
    env.step_tensors(torch.zeros(2, 2))
    env.load_state_dict(env.state_dict())
    env.reset_tensors(1)
    assert len(paused) == count
    assert not env._heart.paused
