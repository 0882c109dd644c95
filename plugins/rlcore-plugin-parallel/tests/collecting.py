"""Collectors of these tests, and what they collect."""

import torch
from rlcore_plugin_testing import make_run

FORK = {"frames_per_batch": 48, "start_method": "fork"}
ALWAYS = {"use": "parallel:workers", "processes": "always"}
CARTPOLE = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 4}
PENDULUM = {"use": "gymnasium", "id": "Pendulum-v1", "num_envs": 4}
NEXT_STEP = {"use": "testing:toy", "num_envs": 4, "reset_mode": "next_step"}


def collector_of(env, use="parallel:workers", model="mlp", transform=(), **keys):
    collector = {**(ALWAYS if use == "parallel:workers" else {"use": use}), "frames_per_batch": 48, **keys}
    sections = {"env": env, "model": {"use": model}, "collector": collector, "transform": list(transform)}
    if model == "testing:toy-memory":
        sections["buffer"] = {"use": "rollout-sequences", "minibatch_size": 12, "sequence_length": 12}
    return make_run(sections=sections).trainer.collector


def collected(collector, batches=3):
    """Return the batches one behind the other, and the episodes; the weights change between them."""
    found, episodes = [], []
    for _ in range(batches):
        found.append(collector.collect().clone())
        episodes += [(e.return_, e.length, e.env_index) for e in collector.episodes()]
        move(collector)
        collector.update_model()
    collector.close()
    return torch.cat(found, dim=1), episodes


def move(collector):
    with torch.no_grad():
        for number, parameter in enumerate(collector._context.model.parameters(), start=1):
            parameter.add_(0.01 * number)


def assert_equal(found, expected):
    for key in expected.keys(include_nested=True, leaves_only=True):
        assert torch.equal(found[key], expected[key]), key
    assert set(found.keys(True, True)) == set(expected.keys(True, True))
