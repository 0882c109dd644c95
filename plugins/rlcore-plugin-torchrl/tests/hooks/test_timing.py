"""LogTiming logs where the time of hooks goes."""

from types import SimpleNamespace

import pytest

from rlcore import LogTiming

clock = SimpleNamespace(now=0.0)


def slow(batch):
    clock.now += 2.0


@pytest.fixture(autouse=True)
def measured_by_that_clock(monkeypatch):
    monkeypatch.setattr("rlcore.hooks.points.perf_counter", lambda: clock.now)


@pytest.fixture
def run(batch, make_trainer):
    """Return a function that trains with a slow operation, and returns what LogTiming logged of it each time."""

    def train(key, **arguments):
        logged = []
        trainer = make_trainer([batch(4)] * 2, optim_steps_per_batch=3)
        trainer.register_op("process_optim_batch", slow)
        hook = LogTiming(**arguments)
        hook.register(trainer)
        trainer.unregister_op(hook)
        trainer.register_op("post_steps_log", lambda batch: logged.append(hook(batch)))
        trainer.train()
        return [timings[key].value for timings in logged]

    return train


def test_the_mean_over_the_calls_is_logged(run):
    assert run("time/hook/slow") == [2, 2]


def test_the_sum_is_logged_on_demand_and_grows(run):
    assert run("other/hook/slow", prefix="other", percall=False) == [6, 12]


def test_erased_times_begin_at_nothing(run):
    assert run("time/hook/slow", percall=False, erase=True) == [6, 6]


def test_log_timings_registers_it(batch, make_trainer):
    trainer = make_trainer([batch(4)] * 2, log_timings=True)
    trainer.register_op("process_optim_batch", slow)
    trainer.train()
    assert trainer.metrics.newest("time/hook/slow") == 2
    assert "log_timing" in trainer.app_state


def test_without_a_trainer_there_is_nothing_to_log():
    assert LogTiming()() == {}
