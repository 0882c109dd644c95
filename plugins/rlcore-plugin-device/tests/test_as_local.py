"""A batch of the device is that of the collector `local` in the same envs, and so are its episodes."""

import pytest
import torch
from rlcore_plugin_testing.contracts.base import StateContract


def collector_of(use, env, frames):
    around = {"env": env, "model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}}
    named = type("Bench", (StateContract,), {"kind": "collector"})
    bench = named.of(use, {"frames_per_batch": frames}, {**around, "buffer": {"use": "rollout", "minibatch_size": 1}})
    context = bench.bench().for_component("collector", "either")  # seeds follow from the name
    return bench.make(context)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize(("num_envs", "steps"), [(1, 7), (5, 40), (3, 64)])
def test_batches_and_episodes_are_those_of_local(env, num_envs, steps):
    """Ends within a batch, at its last step, and episodes that span several batches."""
    section = {"use": "torch-envs", "id": env, "num_envs": num_envs, "max_episode_steps": 16}
    local, device = (collector_of(use, section, num_envs * steps) for use in ("local", "device"))
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
