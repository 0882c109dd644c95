from __future__ import annotations

import logging
import threading
import time

import pytest
from rlcore_plugin_testing import make_run

from rlcore import ConfigError
from rlcore.loggers import limits
from rlcore.loggers.writer import LogWriter, open_writer


class Recorder:
    """A logger that notes what it is given; it may be slow, or fail."""

    def __init__(self, fails=(), blocked=False):
        self.calls, self.threads = [], set()
        self.fails, self.error = fails, RuntimeError("server gone")
        self.free = threading.Event()
        if not blocked:
            self.free.set()

    def _note(self, name, *details):
        self.threads.add(threading.current_thread())
        assert self.free.wait(30)
        if name in self.fails:
            raise self.error
        self.calls.append((name, *details))

    def log_metrics(self, metrics, step):
        self._note("metrics", dict(metrics), step)

    def log_hparams(self, config):
        self._note("hparams", config)

    def flush(self):
        self._note("flush")

    def close(self):
        self._note("close")

    def state_dict(self):
        if "state" in self.fails:
            raise self.error
        return {"written": len(self.calls)}

    def load_state_dict(self, state):
        self.loaded = state


def start(**arguments):
    logger = Recorder(**arguments)
    return logger, LogWriter("mine", logger)


def test_calls_come_in_order_from_one_thread_of_its_own():
    logger, writer = start()
    writer.log_hparams({"a": 1})
    for step in range(100):
        writer.write({"x": 1.0}, step)
    writer.close()
    assert logger.calls == [("hparams", {"a": 1}), *[("metrics", {"x": 1.0}, n) for n in range(100)], ("close",)]
    assert len(logger.threads) == 1
    assert threading.main_thread() not in logger.threads


def test_a_slow_logger_does_not_hold_up_training():
    logger, writer = start(blocked=True)
    for step in range(10):
        writer.write({"x": 1.0}, step)
    assert logger.calls == [], "handed over while the logger is still busy with the first"
    logger.free.set()
    writer.drain()
    assert [call[0] for call in logger.calls] == ["metrics"] * 10 + ["flush"], "drained: nothing is outstanding"
    writer.close()


def test_a_slow_logger_does_not_delay_another():
    slow, slow_writer = start(blocked=True)
    fast, fast_writer = start()
    for writer in (slow_writer, fast_writer):
        writer.write({"x": 1.0}, 1)
    fast_writer.drain()
    assert (slow.calls, len(fast.calls)) == ([], 2)
    slow.free.set()
    for writer in (slow_writer, fast_writer):
        writer.close()


def test_a_failing_logger_is_reported_and_switched_off_after_three_failures(caplog):
    logger, writer = start(fails=("metrics",))
    for step in range(10):
        writer.write({"x": 1.0}, step)
    writer.close()
    assert writer.failures == 3
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert all("logger 'mine' failed: RuntimeError: server gone" in message for message in messages)
    assert messages[-1].endswith("it is switched off for this run")
    assert logger.calls == [("close",)], "it is closed all the same"


def test_a_logger_that_fails_once_goes_on():
    logger, writer = start(fails=("hparams",))
    writer.log_hparams({})
    writer.write({"x": 1.0}, 1)
    writer.close()
    assert logger.calls == [("metrics", {"x": 1.0}, 1), ("close",)]


def test_a_logger_that_fails_to_say_where_it_is_does_not_stop_a_save():
    logger, writer = start(fails=("state",))
    state = writer.state_dict()
    assert writer.failures == 1
    writer.load_state_dict(state)
    assert not hasattr(logger, "loaded")
    writer.close()


def test_the_position_is_that_after_everything_handed_over():
    logger, writer = start()
    for step in range(5):
        writer.write({"x": 1.0}, step)
    state = writer.state_dict()
    writer.load_state_dict(state)
    assert logger.loaded == {"written": 6}  # five rows and the flush
    writer.close()


def test_closing_twice_and_draining_after_that_return():
    logger, writer = start()
    writer.close()
    writer.close()
    writer.drain()
    assert writer.state_dict() is not None
    assert [call[0] for call in logger.calls] == ["close"]


@pytest.mark.parametrize("name", ["flush", "close"])
def test_a_logger_that_fails_at_the_end_does_not_hang_or_raise(name):
    _, writer = start(fails=(name,))
    writer.write({"x": 1.0}, 1)
    writer.drain()
    writer.close()
    assert writer.failures == 1


@pytest.mark.parametrize("error", [RuntimeError("broken"), OSError(28, "No space left on device")], ids=["", "disk"])
def test_a_run_with_a_failing_logger_is_the_run_without_it(build, monkeypatch, error):
    from rlcore_plugin_csv.logger import CSVLogger

    def fail(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(CSVLogger, "log_metrics", fail)
        patch.setattr(CSVLogger, "state_dict", fail)
        run = build(write=True, logger=[{"use": "csv"}])
        run.trainer.train()
    plain = build()
    plain.trainer.train()
    (writer,) = run.trainer.metrics.writers
    assert (writer.failures == 3, writer.off) == ((True, True) if isinstance(error, RuntimeError) else (False, False))
    ours, theirs = run.trainer.model.state_dict(), plain.trainer.model.state_dict()
    assert all(bool((ours[name] == theirs[name]).all()) for name in theirs)


# loggers that hang


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(limits, "DEADLINE", 0.1)
    monkeypatch.setattr(limits, "CALLS", 3)


@pytest.fixture
def hanging(impatient):
    """A logger that answers nothing until the test is over."""
    logger, writer = start(blocked=True)
    yield logger, writer
    logger.free.set()
    writer.thread.join(30)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if "did not answer" in record.getMessage()]


def test_draining_a_logger_that_hangs_ends_and_switches_it_off(hanging, caplog):
    _, writer = hanging
    writer.write({"x": 1.0}, 1)
    began = time.monotonic()
    writer.drain()
    assert 0.05 < time.monotonic() - began < 2
    assert writer.failures == 3
    assert len(warnings(caplog)) == 1
    assert "logger 'mine' did not answer" in caplog.text
    for step in range(50):
        writer.write({"x": 1.0}, step)
    writer.drain()
    assert writer.state_dict() == {"position": None}
    writer.close()
    assert time.monotonic() - began < 2, "it is waited for only once"
    assert len(warnings(caplog)) == 1


def test_a_queue_that_stays_full_switches_the_logger_off(hanging, caplog):
    _, writer = hanging
    began = time.monotonic()
    for step in range(50):
        writer.write({"x": 1.0}, step)
    writer.drain()
    writer.close()
    assert time.monotonic() - began < 2
    assert (writer.failures, len(warnings(caplog))) == (3, 1)


def test_closing_a_logger_that_hangs_ends_and_leaves_it_behind(hanging, caplog):
    _, writer = hanging
    writer.write({"x": 1.0}, 1)
    began = time.monotonic()
    writer.close()
    assert time.monotonic() - began < 2
    assert len(warnings(caplog)) == 1
    assert writer.thread.daemon, "so that it does not hold up the end of the process"


def test_a_logger_that_was_given_up_writes_nothing_later(impatient):
    logger, writer = start(blocked=True)
    for step in range(3):
        writer.write({"x": 1.0}, step)
    writer.drain()
    logger.free.set()
    writer.thread.join(30)
    assert not writer.thread.is_alive(), "the thread ends when the logger answers after all"
    assert [call for call in logger.calls if call[0] == "metrics"] == [("metrics", {"x": 1.0}, 0)]


def test_a_position_that_is_not_known_is_not_set():
    logger, writer = start()
    writer.load_state_dict({"position": None})
    assert not hasattr(logger, "loaded")
    writer.close()


def test_a_run_with_a_hanging_logger_ends_as_the_run_without_it(build, impatient, monkeypatch):
    from rlcore_plugin_csv.logger import CSVLogger

    free = threading.Event()
    monkeypatch.setattr(CSVLogger, "log_metrics", lambda *arguments: free.wait(30))
    run = build(write=True, logger=[{"use": "csv"}])
    try:
        run.trainer.train()
    finally:
        free.set()
    plain = build()
    plain.trainer.train()
    ours, theirs = run.trainer.model.state_dict(), plain.trainer.model.state_dict()
    assert all(bool((ours[name] == theirs[name]).all()) for name in theirs)
    assert run.trainer.last_checkpoint.name.startswith("000000000096-")


# going back, and the key `required`


class Stuck(Recorder):
    def load_state_dict(self, state):
        raise OSError(30, "Read-only file system")


def test_a_logger_that_cannot_go_back_is_switched_off_unless_it_is_required(caplog):
    logger = Stuck()
    writer = LogWriter("stuck", logger)
    writer.load_state_dict({"position": {}})
    writer.write({"a": 1.0}, 1)
    writer.close()
    assert "metrics" not in [call[0] for call in logger.calls], "its rows after the checkpoint would stand there twice"
    assert (writer.failures, writer.left_out) == (3, 1)
    assert "Read-only file system; it is switched off" in caplog.text
    writer = LogWriter("stuck", Stuck(), required=True)
    with pytest.raises(ConfigError, match="logger 'stuck' says required = true"):
        writer.load_state_dict({"position": {}})
    writer.close()


def test_a_run_with_a_required_logger_that_starts_is_as_any_other(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        run = make_run(folder=tmp_path, sections={"logger": [{"use": "csv", "required": True}]})
        run.trainer.train()
    assert run.trainer.metrics.writers[0].failures == 0
    assert (tmp_path / "toy" / "metrics.csv").exists()


class OfAnOlderRlcore:
    """Writes rows, and has none of the methods that came later."""

    def __init__(self, config=None, context=None):
        self.rows, self.sent = [], 0

    def log_metrics(self, row, frames):
        self.rows.append((row, frames))


def test_a_logger_without_the_methods_that_came_later_goes_on_writing(caplog):
    logger = OfAnOlderRlcore()
    writer = open_writer("older", lambda: logger, required=True)
    writer.begin_anew()
    writer.load_state_dict({"position": {}})
    writer.branch()
    writer.start()
    writer.log_hparams({"a": 1})
    writer.show(lambda shown: shown.log_image("a", None, 1), 0)
    writer.write({"a": 1.0}, 5)
    assert writer.state_dict() == {"position": {}}
    assert (writer.files, writer.differences, writer.unsent, writer.failures) == ([], 0, 0, 0)
    writer.close()
    assert logger.rows == [({"a": 1.0}, 5)]
    assert not writer.off
    assert "cannot show images" in caplog.text


def test_a_component_that_cannot_log_is_refused_when_it_is_opened():
    with pytest.raises(ConfigError, match="neither log_scalar nor log_metrics"):
        open_writer("mute", object, required=False)


def test_what_only_an_own_logger_knows_is_asked_of_it():
    logger = OfAnOlderRlcore()
    logger.unsent, logger.differences = 3, 2
    writer = open_writer("older", lambda: logger, required=False)
    writer.load_state_dict({"position": {}})
    writer.drain()
    writer.close()
    assert (writer.unsent, writer.differences) == (3, 2)
