"""Rows E: loggers whose code exits, hangs or keeps others from running, in any method. The run is as without them."""

from __future__ import annotations

import csv
import threading
import time

import pytest
from rlcore_plugin_testing import make_run

from rlcore.errors import ConfigError
from rlcore.loggers import limits
from rlcore.loggers.base import LoggerBase
from rlcore.loggers.writer import LogWriter, close_all, drain_all
from rlcore.process.board import Stillness

BAD = """
import ctypes
import time

from rlcore import Component, hookimpl
from rlcore.loggers.base import LoggerBase


class Unreadable(Exception):
    def __str__(self):
        raise ValueError("no message")


def act():
    {act}


class Bad(LoggerBase):
    def __init__(self, config, context):
        super().__init__("bad")
        if {method!r} == "__init__":
            act()

    def log_metrics(self, metrics, step=None):
        pass

    def state_dict(self):
        return {{"a": 1}}


if {method!r} == "unsent":
    Bad.unsent = property(lambda self: act())
elif {method!r} != "__init__":
    setattr(Bad, {method!r}, lambda self, *arguments, **keywords: act())


@hookimpl
def provide_components():
    return [Component("logger", "bad", Bad)]
"""
ACTS = {
    "exits": "raise SystemExit(0)",
    "raises": 'raise RuntimeError("broken")',
    "raises what no except clause takes": 'raise GeneratorExit("out")',
    "raises what cannot be read": "raise Unreadable()",
    "hangs": "time.sleep(60)",
}
METHODS = ["__init__", "start", "log_metrics", "flush", "state_dict", "load_state_dict", "files", "unsent", "close"]
# every method and every way; what hangs in each method, as each has a deadline of its own
FEW = [case for number, case in enumerate((method, act) for method in METHODS for act in ACTS) if number % 3 == 0]
SLOW = [(method, "hangs") for method in METHODS if (method, "hangs") not in FEW]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(limits, "DEADLINE", 1)
    monkeypatch.setattr(limits, "CLOSING", 1)
    monkeypatch.setattr(limits, "LONG_DEADLINE", 2)


@pytest.fixture(scope="module")
def without_loggers(tmp_path_factory):
    """The digests of the run without loggers, after a stop and a resume."""
    return digests(stopped_and_resumed(tmp_path_factory.mktemp("plain")))


def digests(run):
    manifest = run.trainer.parts.store.entries()[-1].manifest
    return {
        name: hash for name, hash in manifest["digests"].items() if name not in run.trainer.parts.provenance.observers
    }


def stopped_and_resumed(folder, *loggers):
    run = make_run(folder=folder, sections={"logger": list(loggers)})
    run.trainer.stop_at = 32
    run.trainer.train()
    run = make_run(folder=folder, sections={"logger": list(loggers)}, resume=True)
    run.trainer.train()
    return run


@pytest.mark.parametrize(("method", "act"), [*FEW, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)])
def test_e13_whatever_a_logger_does_in_any_of_its_methods_the_run_is_as_without(
    tmp_path, site, without_loggers, method, act
):
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(act=ACTS[act], method=method))
    began = time.monotonic()
    run = stopped_and_resumed(tmp_path, {"use": "bad"}, {"use": "csv"})
    assert time.monotonic() - began < 50
    assert digests(run) == without_loggers
    with (tmp_path / "toy" / "metrics.csv").open(newline="") as stream:
        assert {int(row["frames"]) for row in csv.DictReader(stream)} == {0, 16, 32, 48, 64}
    lost = run.trainer.lost()
    assert lost["failures of logger bad"] >= 1
    assert "failures of logger csv" not in lost


@pytest.mark.parametrize("act", ["exits", "hangs"])
@pytest.mark.parametrize("method", ["__init__", "start"])
def test_e13_a_required_logger_that_exits_or_hangs_refuses_the_run(tmp_path, site, method, act):
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(act=ACTS[act], method=method))
    with pytest.raises(ConfigError, match="required = true and cannot start"):
        make_run(folder=tmp_path, sections={"logger": [{"use": "bad", "required": True}]})


class Plain(LoggerBase):
    """A logger that works, at a pace of its own."""

    def __init__(self, pace=0.0):
        super().__init__()
        self.steps, self.pace = [], pace

    def log_metrics(self, metrics, step=None):
        time.sleep(self.pace)
        self.steps.append(step)


class Holding(LoggerBase):
    """A logger inside a library that keeps the GIL."""

    def __init__(self, seconds):
        super().__init__()
        import ctypes

        self._sleep, self._seconds = ctypes.PyDLL(None).usleep, seconds

    def log_metrics(self, metrics, step=None):
        self._sleep(int(self._seconds * 1e6))


def test_e13_a_logger_that_holds_the_gil_is_switched_off_and_the_others_are_not(caplog):
    bad, good = LogWriter("bad", Holding(1.2)), LogWriter("good", Plain(pace=0.02))
    for step in range(3):
        for writer in (bad, good):
            writer.write({"a": 1.0}, step)
        drain_all([good, bad])
    close_all([good, bad])
    assert (bad.off, good.off) == (True, False)
    assert good.logger.steps == list(range(3))
    assert good.left_out == 0
    assert "logger 'bad' kept all other threads from running" in caplog.text or "'bad' did not answer" in caplog.text
    assert "logger 'good'" not in caplog.text


@pytest.mark.slow
def test_e13_a_logger_that_only_sleeps_while_another_holds_the_gil_is_not_taken_for_it(caplog):
    bad, good = LogWriter("bad", Holding(2)), LogWriter("good", Plain(pace=0.3))
    for step in range(5):
        good.write({"a": 1.0}, step)
        time.sleep(0.1)  # its call goes on when the other one begins
        bad.write({"a": 1.0}, step)
        drain_all([good, bad])
    close_all([good, bad])
    assert (bad.off, good.off) == (True, False)
    assert good.logger.steps == list(range(5))
    assert "logger 'good'" not in caplog.text


def test_e13_a_logger_that_hangs_in_its_turn_takes_no_other_with_it(monkeypatch):
    monkeypatch.setattr(limits, "DEADLINE", 6)  # the good one goes on after half of it

    class Hanging(Plain):
        def log_metrics(self, metrics, step=None):
            time.sleep(60)

    turns = threading.Lock()
    hanging, good = LogWriter("hanging", Hanging()), LogWriter("good", Plain())
    for writer in (hanging, good):
        writer.thread.turns = turns
        writer.write({"a": 1.0}, 0)
    close_all([good, hanging])
    assert (hanging.off, good.off, good.logger.steps) == (True, False, [0])


def test_e13_a_queue_that_is_full_because_another_logger_holds_the_gil_is_waited_for(monkeypatch):
    monkeypatch.setattr(limits, "CALLS", 2)
    writer = LogWriter("good", Plain(pace=0.02))
    holding = Holding(1.5)
    for step in range(3):
        writer.write({"a": 1.0}, step)
        holding.log_metrics({}, step)  # in this thread: the others stand still as well
    writer.close()
    assert (writer.off, writer.logger.steps) == (False, list(range(3)))


def test_e13_time_in_which_no_thread_ran_is_not_counted():
    waits, stalls = iter([2.0, 0.05, 0.05]), []
    stillness = Stillness(stalled=stalls.append)
    assert not stillness.wait(lambda seconds: time.sleep(next(waits, seconds)), 0.25)
    assert len(stalls) == 1
    assert stalls[0] >= 2.0
    assert not Stillness().wait(lambda seconds: False, 0.0)
    assert Stillness().wait(lambda seconds: True, 0.0)


def test_e13_how_much_waits_for_a_server_is_asked_in_the_thread_of_the_logger(caplog):
    class Counting(Plain):
        @property
        def unsent(self):
            return 7

    class Hanging(Plain):
        @property
        def unsent(self):
            time.sleep(60)

    counting, hanging = LogWriter("counting", Counting()), LogWriter("hanging", Hanging())
    began = time.monotonic()
    drain_all([counting, hanging])
    assert [writer.unsent for writer in (counting, hanging)][1] == 0
    close_all([counting, hanging])
    assert time.monotonic() - began < 5
    assert (counting.unsent, hanging.unsent) == (7, 0)
    assert "logger 'hanging' did not answer" in caplog.text


def test_e13_a_logger_that_cannot_say_how_much_waits_writes_on(caplog):
    class Ignorant(Plain):
        @property
        def unsent(self):
            raise SystemExit(0)

    writer = LogWriter("ignorant", Ignorant())
    for step in range(5):
        writer.write({"a": 1.0}, step)
        writer.drain()
    writer.close()
    assert (writer.off, writer.unsent, writer.failures) == (False, 0, 6)
    assert writer.logger.steps == list(range(5))
    assert caplog.text.count("cannot say how much is unsent") == 1
