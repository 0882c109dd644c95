"""What workers collect is what one process would have collected, however many workers there are."""

import ctypes
import itertools
import multiprocessing
import threading

import numpy as np
import pytest
import torch
from rlcore_plugin_parallel import worth
from rlcore_plugin_parallel.memory import Block, fields_of
from rlcore_plugin_testing import check_resumed, make_run, through_checkpoint

from rlcore import ConfigError
from rlcore.errors import StorageError

from .collecting import ALWAYS, CARTPOLE, FORK, NEXT_STEP, PENDULUM, assert_equal, collected, collector_of, move


def test_the_noise_is_that_of_a_policy_which_follows_the_progress():
    collector = collector_of(CARTPOLE, num_workers=2, start_method="fork")
    calls, refresh = [], collector._policy.refresh

    def spy():
        calls.append(collector._sent)
        refresh()

    collector._policy.refresh = spy
    collected(collector)
    assert calls == [0, 1, 2], "before the noise of each batch is sampled"


@pytest.mark.parametrize("env", [CARTPOLE, PENDULUM, NEXT_STEP], ids=["discrete", "continuous", "next_step"])
def test_batches_and_episodes_are_those_of_one_process_to_the_bit(env):
    expected, episodes = collected(collector_of(env, use="local"))
    for num_workers in (1, 2, 4):
        found, ended = collected(collector_of(env, num_workers=num_workers, start_method="fork"))
        assert_equal(found, expected)
        assert ended == episodes
    assert env is PENDULUM or len({index for *_, index in episodes}) == 4, "episodes of every env"


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_states_of_a_policy_are_those_of_one_process_to_the_bit(reset_mode):
    keys = {"env": {**NEXT_STEP, "reset_mode": reset_mode}, "model": "testing:toy-memory"}
    expected, _ = collected(collector_of(use="local", **keys))
    assert expected["policy_state"].abs().min(-1).values[~expected["first"].squeeze(-1)].min() > 0
    for num_workers in (1, 2):
        found, _ = collected(collector_of(num_workers=num_workers, start_method="fork", **keys))
        assert_equal(found, expected)


def test_states_of_a_policy_on_its_own_rows_alone_are_carried_too():
    keys = {"env": NEXT_STEP, "model": "testing:toy-memory"}
    expected, _ = collected(collector_of(use="local", **keys))
    found, _ = collected(collector_of(exact_rows=False, start_method="fork", **keys))
    torch.testing.assert_close(found["next", "policy_state"], expected["next", "policy_state"])


@pytest.mark.parametrize("exact_rows", [True, False])
def test_a_resume_goes_on_with_the_states_of_a_policy(exact_rows):
    keys = {"env": NEXT_STEP, "model": "testing:toy-memory", "exact_rows": exact_rows, **FORK}
    whole, interrupted, resumed = (collector_of(**keys) for _ in range(3))
    for _ in range(2):
        whole.collect(), interrupted.collect()
    resumed.load_state_dict(through_checkpoint(interrupted.state_dict()))
    expected, found = whole.collect(), resumed.collect()
    assert_equal(found, expected)
    for collector in (whole, interrupted, resumed):
        collector.close()


def test_workers_ahead_carry_the_states_of_a_policy():
    collector = collector_of(NEXT_STEP, mode="async", model="testing:toy-memory", **FORK)
    batches = [collector.collect().clone() for _ in range(3)]
    collector.close()
    for before, after in itertools.pairwise(batches):
        assert torch.equal(before["next", "policy_state"][:, -1], after["policy_state"][:, 0])


@pytest.mark.parametrize("start_method", ["forkserver", pytest.param("spawn", marks=pytest.mark.slow)])
def test_the_way_in_which_workers_start_changes_nothing(start_method):
    expected, episodes = collected(collector_of(CARTPOLE, use="local"), batches=2)
    found, ended = collected(collector_of(CARTPOLE, start_method=start_method), batches=2)
    assert_equal(found, expected)
    assert ended == episodes


def test_shared_tensors_begin_where_others_do_since_the_bits_of_products_depend_on_it():
    processes, kept = multiprocessing.get_context("fork"), []
    for _ in range(8):
        kept.append(processes.RawArray(ctypes.c_ubyte, 8))  # what comes next begins eight bytes later
        block = Block(processes, fields_of({"a": ((3,), torch.float32), "b": ((2, 5), torch.float64)}))
        kept.append(block)
        for number, tensor in enumerate(block.tensors().values()):
            assert tensor.data_ptr() % 64 == 0
            tensor.fill_(number)
        assert [tensor.unique().tolist() for tensor in block.tensors().values()] == [[0], [1]]


def test_transforms_that_keep_to_their_env_are_divided_with_the_envs():
    transform = [{"use": "transforms:frame-stack", "frames": 3}, {"use": "transforms:time-feature"}]
    expected, _ = collected(collector_of(CARTPOLE, use="local", transform=transform))
    found, _ = collected(collector_of(CARTPOLE, transform=transform, **FORK))
    assert_equal(found, expected)


def test_leaves_and_masks_are_those_of_one_process_whatever_changes_a_leaf():
    env = {"use": "testing:toy-dict", "num_envs": 4, "actions": "choices"}
    transform = [{"use": "transforms:frame-stack", "frames": 3, "leaf": "frame"}]
    expected, _ = collected(collector_of(env, use="local", transform=transform))
    found, _ = collected(collector_of(env, transform=transform, **FORK))
    assert_equal(found, expected)


def test_a_run_with_leaves_and_masks_resumes_to_the_bit(tmp_path):
    sections = {
        "env": {"use": "testing:toy-dict", "episode_lengths": [19, 7, 12]},
        "model": {"use": "mlp", "hidden": [8]},
        "transform": [{"use": "transforms:frame-stack", "frames": 3, "leaf": "frame"}],
        "collector": {**ALWAYS, "num_workers": 2, "frames_per_batch": 16, "start_method": "fork"},
    }
    check_resumed(tmp_path, sections=sections)


def test_rows_of_the_own_envs_alone_give_the_same_up_to_rounding():
    expected, _ = collected(collector_of(PENDULUM, use="local"), batches=1)
    found, _ = collected(collector_of(PENDULUM, exact_rows=False, **FORK), batches=1)
    assert torch.allclose(found["action"], expected["action"], atol=1e-4)
    assert torch.allclose(found["sample_log_prob"], expected["sample_log_prob"], atol=1e-3)


@pytest.mark.parametrize("max_lag", [1, 3])
def test_workers_ahead_lag_by_as_many_updates_as_they_say_and_no_more(max_lag):
    collector = collector_of(CARTPOLE, mode="async", max_lag=max_lag, **FORK)
    model = collector._context.model
    versions, lags = [[p.clone() for p in model.parameters()]], []
    for _ in range(8):
        batch = collector.collect().clone()
        lags += collector.lags
        assert collector.metrics() == {"policy_lag": max(collector.lags)}
        for share, lag in zip((batch[:2], batch[2:]), collector.lags, strict=True):
            assert share["collector", "policy_lag"].unique().tolist() == [lag]
        now = [parameter.clone() for parameter in model.parameters()]
        for share, lag in zip((batch[:2], batch[2:]), collector.lags, strict=True):
            restore(model, versions[-1 - lag])
            with torch.no_grad():
                expected = model.actor.distribution.log_prob(model.actor(share["observation"]), share["action"])
            assert torch.allclose(share["sample_log_prob"], expected, atol=1e-5), "not the weights that it names"
        restore(model, now)
        move(collector)
        versions.append([parameter.clone() for parameter in model.parameters()])
        collector.update_model()
    collector.close()
    assert lags[0] == 0
    assert 0 < max(lags) <= max_lag


def restore(model, weights):
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(value)


def test_steps_of_workers_ahead_follow_one_another():
    batch, episodes = collected(collector_of(CARTPOLE, mode="async", max_lag=2, **FORK), batches=6)
    going_on = ~batch["next", "done"][:, :-1, 0]
    assert torch.equal(batch["next", "observation"][:, :-1][going_on], batch["observation"][:, 1:][going_on])
    lengths = {index: [length for _, length, env in episodes if env == index] for index in range(4)}
    for index in range(4):
        ends = batch["next", "done"][index, :, 0].nonzero().flatten()
        assert np.diff(ends, prepend=-1).tolist() == lengths[index]


def test_weights_reach_the_workers_with_update_model_and_not_before():
    first, second = (collector_of(CARTPOLE, **FORK) for _ in range(2))
    for collector in (first, second):
        collector.collect()
        move(collector)
    first.update_model()
    found, before = first.collect().clone(), second.collect().clone()
    assert not torch.equal(found["sample_log_prob"], before["sample_log_prob"])
    second.close()
    log_prob = first._context.model.actor
    expected = log_prob.distribution.log_prob(log_prob(found["observation"]), found["action"])
    assert torch.allclose(found["sample_log_prob"], expected.detach(), atol=1e-5)
    first.close()


def test_the_lag_is_logged():
    sections = {"collector": {**ALWAYS, "frames_per_batch": 16, "mode": "async", **FORK}}
    sections["collector"]["frames_per_batch"] = 16
    trainer = make_run(sections=sections).trainer
    rows = []
    trainer.metrics.write = lambda progress: rows.append(list(trainer.metrics._values))
    trainer.train()
    assert "collector/policy_lag" in rows[1]


@pytest.mark.parametrize(
    ("keys", "env", "message"),
    [
        ({"num_workers": 3}, CARTPOLE, r"num_workers = 3 does not divide \[env\] num_envs = 4"),
        ({"frames_per_batch": 50}, CARTPOLE, "frames_per_batch = 50 is not a multiple of 4"),
        ({"num_workers": 0}, CARTPOLE, "greater than or equal to 1"),
        ({"max_lag": 0}, CARTPOLE, "greater than or equal to 1"),
        ({"mode": "late"}, CARTPOLE, "'sync' or 'async'"),
        ({"timeout": 0}, CARTPOLE, "greater than 0"),
    ],
)
def test_what_a_config_may_not_say(keys, env, message):
    with pytest.raises(ConfigError, match=message):
        collector_of(env, **keys)


def test_a_transform_that_learns_while_collecting_is_refused():
    with pytest.raises(ConfigError, match="RunningObservationNorm learns from the observations of all envs"):
        collector_of(CARTPOLE, transform=[{"use": "transforms:running-observation-norm"}], **FORK)


def test_a_model_that_cannot_be_sent_is_refused_by_name():
    collector = collector_of(CARTPOLE, **FORK)
    collector._context.model.lock = threading.Lock()
    with pytest.raises(ConfigError, match="the model cannot be sent to worker processes: TypeError"):
        collector.collect()


@pytest.fixture
def costly_processes(monkeypatch):
    """Let no env be worth a process, whatever its steps take on this machine."""
    monkeypatch.setattr(worth, "_COST", 1e6)


def test_cheap_envs_are_stepped_in_the_process_of_the_learner_with_the_same_bits(costly_processes, caplog):
    caplog.set_level("INFO")
    expected, episodes = collected(collector_of(CARTPOLE, use="local"))
    collector = collector_of(CARTPOLE, processes="auto", **FORK)
    found, ended = collected(collector)
    assert_equal(found, expected)
    assert ended == episodes
    assert collector._pool is None
    assert "the envs are stepped in this process: 2 workers would make a batch" in caplog.text


def test_envs_whose_steps_take_long_have_processes(monkeypatch):
    monkeypatch.setattr(worth, "_COST", -1e6)
    expected, _ = collected(collector_of(CARTPOLE, use="local"))
    collector = collector_of(CARTPOLE, processes="auto", **FORK)
    found, _ = collected(collector)
    assert_equal(found, expected)
    assert collector._pool is not None


@pytest.mark.parametrize("cost", [1e6, -1e6])
def test_a_checkpoint_says_where_the_envs_are_stepped(monkeypatch, cost):
    monkeypatch.setattr(worth, "_COST", cost)
    whole, resumed = (collector_of(CARTPOLE, processes="auto", **FORK) for _ in range(2))
    whole.collect()
    state = through_checkpoint(whole.state_dict())
    monkeypatch.setattr(worth, "_COST", -cost)
    resumed.load_state_dict(state)
    assert_equal(resumed.collect(), whole.collect())
    assert (resumed._pool is None) == (whole._pool is None) == (cost > 0)
    whole.close(), resumed.close()


def test_episodes_of_another_number_of_workers_are_refused():
    saved, other = (collector_of(CARTPOLE, num_workers=count, start_method="fork") for count in (2, 4))
    saved.collect()
    with pytest.raises(StorageError, match="num_workers = 4 here, 2 in the checkpoint"):
        other.load_state_dict(through_checkpoint(saved.state_dict()))
    saved.close(), other.close()


def test_the_measure_is_of_what_a_batch_would_save():
    context = make_run(sections={"env": CARTPOLE, "model": {"use": "mlp"}}).trainer.collector._context
    seconds = worth._step_seconds(context)
    assert 0 < seconds < 1
    assert worth.saved_seconds(context, 1, 1) == -worth._COST, "one worker steps all envs too"
