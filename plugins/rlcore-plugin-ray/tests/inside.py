"""Tests of the collector, which run where a real Ray is: with the address of one in RLCORE_TEST_RAY."""

import os
import signal

import pytest
import ray
import torch
from rlcore_plugin_testing import make_run

from rlcore import ConfigError

ADDRESS = os.environ["RLCORE_TEST_RAY"]
ray.init(address=ADDRESS, log_to_driver=False)  # once: collectors find this process connected, and leave it so
ACTORS = {"use": "ray:actors", "address": ADDRESS, "num_cpus": 0.1, "frames_per_batch": 48}
CARTPOLE = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 4}


def collector_of(collector, model="mlp", **env):
    sections = {"env": {**CARTPOLE, **env}, "model": {"use": model}, "collector": collector}
    return make_run(sections=sections).trainer.collector


def move(collector):
    with torch.no_grad():
        for number, parameter in enumerate(collector._context.model.parameters(), start=1):
            parameter.add_(0.01 * number)
    collector.update_model()


def collected(collector, batches=4, before=lambda batch: None):
    """Return batches one behind the other, and their episodes; the weights change between them."""
    found, episodes = [], []
    for batch in range(batches):
        before(batch)
        found.append(collector.collect().clone())
        episodes += [(e.return_, e.length, e.env_index) for e in collector.episodes()]
        move(collector)
    metrics = collector.metrics() if hasattr(collector, "metrics") else {}
    collector.close()
    return torch.cat(found, dim=1), episodes, metrics


def assert_equal(found, expected):
    for key in expected.keys(include_nested=True, leaves_only=True):
        assert torch.equal(found[key], expected[key]), key
    assert set(found.keys(True, True)) == set(expected.keys(True, True))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_batches_are_those_of_one_process_to_the_bit_although_actors_are_lost(number):
    expected, episodes, _ = collected(collector_of({"use": "local", "frames_per_batch": 48}))
    collector = collector_of({**ACTORS, "timeout": 1.0})

    def strike(batch):
        if batch in (1, 3):
            os.kill(collector.pids()[batch // 2], number)

    found, ended, metrics = collected(collector, before=strike)
    assert_equal(found, expected)
    assert ended == episodes
    assert metrics["replaced_workers"] == 2
    assert metrics["dropped_episodes"] == 0


def test_actors_ahead_lag_by_as_many_updates_as_they_say_and_no_more():
    collector = collector_of({**ACTORS, "mode": "async", "max_lag": 2})
    model, lags, versions = collector._context.model, [], []
    for _ in range(6):
        batch = collector.collect().clone()
        lags.append(max(collector.lags))
        versions.append({name: value.clone() for name, value in model.state_dict().items()})
        now = versions[-1]
        model.load_state_dict(versions[-1 - lags[-1]])
        with torch.no_grad():
            expected = model.actor.distribution.log_prob(model.actor(batch["observation"]), batch["action"])
        assert torch.allclose(batch["sample_log_prob"], expected, atol=1e-5), "not the weights that it names"
        model.load_state_dict(now)
        move(collector)
    collector.close()
    assert lags == [0, 1, 2, 2, 2, 2]


def test_an_env_that_raises_is_named_with_its_worker():
    keys = {"use": "testing:faulty", "fault": "raise", "at": 20, "num_envs": 2}
    collector = make_run(sections={"env": keys, "collector": {**ACTORS, "frames_per_batch": 96}}).trainer.collector
    with pytest.raises(Exception, match=r"collector worker [01] .* on purpose"):
        collector.collect()


def test_actors_that_find_no_room_are_said():
    with pytest.raises(ConfigError, match="1000 CPU are needed, and the cluster of Ray has"):
        collector_of({**ACTORS, "num_cpus": 500, "wait": 0.5}).collect()
