"""Envs that step in workers while one policy acts for all of them give what one process would have given."""

import os
import signal

import pytest
import torch
from rlcore_plugin_parallel import env_processes
from rlcore_plugin_testing import check_resumed, through_checkpoint

from rlcore import ConfigError, EnvError

from .collecting import CARTPOLE, NEXT_STEP, PENDULUM, assert_equal, collected, collector_of

CENTRAL = {"use": "parallel:central", "start_method": "fork"}
ALTERNATING = {**CENTRAL, "alternating": True}


@pytest.mark.parametrize("keys", [CENTRAL, ALTERNATING], ids=["central", "alternating"])
@pytest.mark.parametrize("env", [CARTPOLE, PENDULUM, NEXT_STEP], ids=["discrete", "continuous", "next_step"])
def test_batches_and_episodes_are_those_of_one_process_to_the_bit(env, keys):
    expected, episodes = collected(collector_of(env, use="local"))
    for num_workers in (2, 4):
        found, ended = collected(collector_of(env, num_workers=num_workers, **keys))
        assert_equal(found, expected)
        assert ended == episodes


@pytest.mark.parametrize("keys", [CENTRAL, ALTERNATING], ids=["central", "alternating"])
@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_states_of_a_policy_are_those_of_one_process_to_the_bit(reset_mode, keys):
    around = {"env": {**NEXT_STEP, "reset_mode": reset_mode}, "model": "testing:toy-memory"}
    expected, _ = collected(collector_of(use="local", **around))
    found, _ = collected(collector_of(**around, **keys))
    assert_equal(found, expected)


@pytest.mark.parametrize("keys", [CENTRAL, ALTERNATING], ids=["central", "alternating"])
def test_leaves_and_masks_are_those_of_one_process(keys):
    env = {"use": "testing:toy-dict", "num_envs": 4, "actions": "choices"}
    transform = [{"use": "transforms:frame-stack", "frames": 3, "leaf": "frame"}]
    expected, _ = collected(collector_of(env, use="local", transform=transform))
    found, _ = collected(collector_of(env, transform=transform, **keys))
    assert_equal(found, expected)


def test_a_transform_may_learn_from_the_observations_of_all_envs():
    transform = [{"use": "transforms:running-observation-norm"}]
    expected, _ = collected(collector_of(CARTPOLE, use="local", transform=transform))
    found, _ = collected(collector_of(CARTPOLE, transform=transform, **CENTRAL))
    assert_equal(found, expected)


def test_halves_on_their_own_rows_give_the_same_up_to_rounding():
    expected, _ = collected(collector_of(PENDULUM, use="local"), batches=1)
    found, _ = collected(collector_of(PENDULUM, exact_rows=False, **ALTERNATING), batches=1)
    torch.testing.assert_close(found["action"], expected["action"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("keys", [CENTRAL, ALTERNATING], ids=["central", "alternating"])
def test_a_resume_goes_on_in_the_middle_of_episodes(keys):
    around = {"env": NEXT_STEP, "model": "testing:toy-memory"}
    whole, interrupted, resumed = (collector_of(**around, **keys) for _ in range(3))
    for _ in range(2):
        whole.collect(), interrupted.collect()
    resumed.load_state_dict(through_checkpoint(interrupted.state_dict()))
    assert_equal(resumed.collect(), whole.collect())
    for collector in (whole, interrupted, resumed):
        collector.close()


def killed(keys, at, number=signal.SIGKILL, env=CARTPOLE):
    """Return the batches of a collector whose workers are killed before some of them."""
    collector, found = collector_of(env, timeout=1, **keys), []
    for batch in range(4):
        if batch in at:
            os.kill(collector.pids()[batch % 2], number)
        found.append(collector.collect().clone())
    assert collector.metrics() == {"replaced_workers": len(at)}
    collector.close()
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("keys", [CENTRAL, ALTERNATING], ids=["central", "alternating"])
@pytest.mark.parametrize("every", [0.0, 1.0], ids=["loaded", "replayed"])
def test_f4_a_worker_that_is_killed_is_replaced_with_the_same_bits(keys, every, monkeypatch):
    monkeypatch.setattr(env_processes, "EVERY", every)
    monkeypatch.setattr(env_processes, "SHARE", 0.0)
    whole = collector_of(CARTPOLE, use="local")
    expected = torch.cat([whole.collect().clone() for _ in range(4)], dim=1)
    assert_equal(killed(keys, at=(1, 2)), expected)


def test_f3_a_worker_that_hangs_is_replaced_with_the_same_bits():
    whole = collector_of(CARTPOLE, use="local")
    expected = torch.cat([whole.collect().clone() for _ in range(4)], dim=1)
    assert_equal(killed(CENTRAL, at=(2,), number=signal.SIGSTOP), expected)


def test_f4_envs_that_cannot_be_saved_are_not_replaced(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_testing.toy.ToyEnv.inexact", lambda env: "on purpose", raising=False)
    with pytest.raises(EnvError, match=r"worker 1 .* SIGKILL .* cannot go on in another process, as their state"):
        killed(CENTRAL, at=(1,), env=NEXT_STEP)


def test_f1_an_env_that_raises_ends_the_batch_and_every_worker():
    collector = collector_of({"use": "testing:faulty", "fault": "raise", "at": 20, "num_envs": 2}, **CENTRAL)
    pids = collector.pids()
    collector.collect() if collector._steps < 20 else None
    with pytest.raises(EnvError, match=r"collector worker [01] .* on purpose"):
        collector.collect()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_halves_need_an_even_number_of_workers():
    with pytest.raises(ConfigError, match="num_workers = 1 with alternating = true"):
        collector_of(CARTPOLE, num_workers=1, **ALTERNATING)


def test_a_transform_that_learns_is_refused_with_halves():
    with pytest.raises(ConfigError, match="RunningObservationNorm learns from the observations of all envs"):
        collector_of(CARTPOLE, transform=[{"use": "transforms:running-observation-norm"}], **ALTERNATING)


def test_a_run_resumes_to_the_bit(tmp_path):
    check_resumed(tmp_path, sections={"collector": {**ALTERNATING, "frames_per_batch": 16}})
