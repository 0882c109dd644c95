"""LogTiming logs where the time of hooks goes."""

import time

import pytest

from rlcore import LogTiming


def slow(batch):
    time.sleep(0.002)


@pytest.fixture
def run(batch, make_trainer):
    """Return a function that trains with a slow operation, and returns what LogTiming logged in each iteration."""

    def train(**arguments):
        logged = []
        trainer = make_trainer([batch(4)] * 2, optim_steps_per_batch=3)
        trainer.register_op("process_optim_batch", slow)
        hook = LogTiming(**arguments)
        hook.register(trainer)
        trainer.unregister_op(hook)
        trainer.register_op("post_steps_log", lambda batch: logged.append(hook(batch)))
        trainer.train()
        return [{key: value.value for key, value in found.items()} for found in logged]

    return train


def test_the_mean_over_the_calls_is_logged(run):
    assert all(0.002 <= found["time/hook/slow"] < 0.2 for found in run())


def test_the_sum_is_logged_on_demand_and_grows(run):
    first, second = (found["other/hook/slow"] for found in run(prefix="other", percall=False))
    assert 0.006 <= first < second
    assert second >= 0.012


def test_erased_times_begin_anew(run):
    first, second = (found["time/hook/slow"] for found in run(percall=False, erase=True))
    assert second < first + 0.006


def test_log_timings_registers_it(batch, make_trainer):
    trainer = make_trainer([batch(4)] * 2, log_timings=True)
    trainer.register_op("process_optim_batch", slow)
    trainer.train()
    assert trainer.metrics.newest("time/hook/slow") >= 0.002
    assert "log_timing" in trainer.app_state


def test_without_a_trainer_there_is_nothing_to_log():
    assert LogTiming()() == {}
