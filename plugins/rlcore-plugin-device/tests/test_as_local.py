"""A batch of the device is that of the collector `local` in the same envs, and so are its episodes."""

import pytest
import torch
from rlcore_plugin_testing.contracts.base import StateContract

from .runs import run_of

MEMORY = {
    "model": {"use": "recurrent:lstm", "size": 8},
    "buffer": {"use": "rollout-sequences", "minibatch_size": 1, "sequence_length": 1},
}


def collector_of(use, env, frames, sections=None, **keys):
    around = {"env": env, "model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}}
    around |= {"buffer": {"use": "rollout", "minibatch_size": 1}, **(sections or {})}
    named = type("Bench", (StateContract,), {"kind": "collector"})
    bench = named.of(use, {"frames_per_batch": frames, **keys}, around)
    context = bench.bench().for_component("collector", "either")  # seeds follow from the name
    return bench.make(context)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize(("num_envs", "steps"), [(1, 7), (5, 40), (3, 64)])
@pytest.mark.parametrize("sections", [{}, MEMORY], ids=["mlp", "lstm"])
def test_batches_and_episodes_are_those_of_local(env, num_envs, steps, sections):
    """Ends within a batch, at its last step, and episodes that span several batches."""
    section = {"use": "torch-envs", "id": env, "num_envs": num_envs, "max_episode_steps": 16}
    local, device = (collector_of(use, section, num_envs * steps, sections) for use in ("local", "device"))
    ended = 0
    for _ in range(6):
        expected, batch = local.collect(), device.collect()
        keys = list(expected.keys(include_nested=True, leaves_only=True))
        assert list(batch.keys(include_nested=True, leaves_only=True)) == keys
        for key in keys:
            assert torch.equal(batch[key], expected[key]), key
        assert list(device.episodes()) == list(local.episodes())
        ended += len(local.episodes())
    assert ended > num_envs


@pytest.mark.parametrize("most", ["of the env", "all"])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize(
    "sections", [{}, {**MEMORY, "buffer": {**MEMORY["buffer"], "minibatch_size": 16}}], ids=["mlp", "lstm"]
)
def test_estimates_are_those_of_local(env, sections, most):
    """Where episodes are truncated and terminated, within a batch and at its end."""
    local, device = (run_of(use, env=env, sections=sections) for use in ("local", "device"))
    assert device.parts.collector.most_truncations == 2
    if most == "all":
        device.parts.collector.most_truncations = 16
    for _ in zip(local, device, strict=True):
        for key in ("state_value", "advantage", "value_target"):
            torch.testing.assert_close(device.batch[key], local.batch[key], rtol=1e-3, atol=1e-4, msg=key)
    assert local.batch["next", "truncated"].any()


@pytest.mark.slow
def test_a_compiled_step_is_the_eager_one_but_for_rounding():
    section = {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 3, "max_episode_steps": 8}
    eager, compiled = (collector_of("device", section, 3 * 10, compile=compile) for compile in (False, True))
    expected, batch = eager.collect(), compiled.collect()
    for key in expected.keys(include_nested=True, leaves_only=True):
        torch.testing.assert_close(batch[key], expected[key], rtol=1e-4, atol=1e-5)
    assert [episode.length for episode in compiled.episodes()] == [episode.length for episode in eager.episodes()]
