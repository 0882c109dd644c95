"""Signals that ask a run to stop, and saves that may go on meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import wait_while_moving
from rlcore.types.heart import Heart


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_for_a_stop_and_handlers_are_put_back(number):
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    reasons = []
    with stop_on_signal(reasons.append) as received:
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 0.01)
        assert received == [number]
    assert reasons == [number.name]
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_second_interrupt_stops_at_once_and_a_second_termination_does_not():
    reasons = []
    with stop_on_signal(reasons.append):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(StopAtOnce):
            os.kill(os.getpid(), signal.SIGINT)
    assert reasons == ["SIGTERM", "SIGTERM", "SIGINT"]


def test_a_stop_at_once_that_did_not_wake_the_main_thread_is_sent_again():
    """The handler of a signal that another thread receives waits for the system call of the main thread."""
    receiver = threading.Thread(target=lambda: (time.sleep(0.3), signal.pthread_kill(receiver.ident, signal.SIGQUIT)))
    began = time.monotonic()
    receiver.start()
    with pytest.raises(StopAtOnce) as stopped, stop_on_signal(lambda reason: None):
        time.sleep(60)
    assert stopped.value.number == signal.SIGQUIT
    assert time.monotonic() - began < 4, "before the main thread would be given up"


def test_outside_the_main_thread_no_handler_is_installed():
    before, seen = signal.getsignal(signal.SIGINT), []

    def use():
        with stop_on_signal(lambda reason: None) as received:
            seen.append((signal.getsignal(signal.SIGINT), received))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [(before, [])]


HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


def test_handlers_are_put_back_after_an_error():
    before = [signal.getsignal(number) for number in HANDLED]
    with pytest.raises(ZeroDivisionError), stop_on_signal(lambda reason: None):
        1 / 0  # noqa: B018
    assert [signal.getsignal(number) for number in HANDLED] == before


def test_when_the_grace_time_is_over_what_runs_is_interrupted():
    before, alarm = [signal.getsignal(number) for number in HANDLED], signal.getitimer(signal.ITIMER_REAL)[0]
    began = time.monotonic()

    def run():
        with stop_on_signal(lambda reason: None, grace=0.05):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)

    with pytest.raises(GraceExpired, match=r"no safe point within 0.05 s of SIGTERM"):
        run()
    assert time.monotonic() - began < 5
    assert [signal.getsignal(number) for number in HANDLED] == before
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (alarm > 0)


def test_the_grace_time_counts_from_the_first_signal():
    began = time.monotonic()

    def run():
        with stop_on_signal(lambda reason: None, grace=0.3):
            while time.monotonic() - began < 5:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)

    with pytest.raises(GraceExpired, match="of SIGTERM"):
        run()
    assert time.monotonic() - began < 2


def test_a_stop_within_the_grace_time_is_not_interrupted_afterwards():
    with stop_on_signal(lambda reason: None, grace=0.05):
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)


def test_a_process_that_is_forked_inside_handles_its_own_signals_and_its_parent_hears_of_none():
    reasons = []
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with stop_on_signal(reasons.append, grace=0.1):
            child = os.fork()
            if not child:
                time.sleep(30)
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
            time.sleep(0.3)
        assert reasons == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_save_that_moves_may_finish_and_one_that_stands_still_may_not(monkeypatch):
    monkeypatch.setattr("rlcore.process.signals._STANDING", 0.5)
    began, moves = time.monotonic(), 1.0

    def run():
        with stop_on_signal(lambda reason: None, 0.1, saving=lambda: (min(time.monotonic() - began, moves), 1)):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)

    with pytest.raises(GraceExpired):
        run()
    assert moves + 0.4 < time.monotonic() - began < 5


def test_a_sync_in_which_nothing_can_be_seen_to_move_has_its_own_patience(monkeypatch):
    monkeypatch.setattr("rlcore.process.signals._STANDING", 0.2)
    with stop_on_signal(lambda reason: None, 0.1, saving=lambda: ("in a sync", 20)):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.8)


@pytest.mark.parametrize("patience", [1, 20])
def test_a_last_save_is_waited_for_as_long_as_a_sync_may_take(tmp_path, patience):
    heart, release, began = Heart(), threading.Event(), time.monotonic()
    with heart.save(tmp_path) as save:
        save.patience = patience
        saving = threading.Thread(target=release.wait, args=(1.5,), daemon=True)
        saving.start()
        wait_while_moving(saving, heart, 0.5)
    assert (time.monotonic() - began > 1.4) == (patience > 1)
    release.set()
    saving.join()


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["grace", "at once"])
def test_a_main_thread_that_does_not_react_is_given_up(monkeypatch, signals):
    """It waits for a lock, and no signal interrupts that."""
    monkeypatch.setattr("rlcore.process.signals._REACTION", 0.2)
    given_up, numbers = threading.Event(), []

    def send():
        for number in signals:
            time.sleep(0.1)
            os.kill(os.getpid(), number)

    def give_up(number):
        numbers.append(number)
        given_up.set()

    def run():
        with stop_on_signal(lambda reason: None, 0.2 if len(signals) == 1 else 30, give_up=give_up):
            signal.pthread_sigmask(signal.SIG_BLOCK, signals)
            threading.Thread(target=send).start()
            assert given_up.wait(5)

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with pytest.raises((GraceExpired, StopAtOnce)):
            run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert numbers == signals[:1]


def test_a_grace_that_expired_is_no_error_that_could_be_caught_as_one():
    assert not issubclass(GraceExpired, Exception)
    assert not issubclass(StopAtOnce, Exception)


@pytest.fixture
def alarm():
    """The alarm of a program around; put back what was there."""
    rings = []
    before, timer = signal.signal(signal.SIGALRM, lambda *arguments: rings.append(1)), signal.getitimer(0)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield rings
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *timer)


@pytest.mark.parametrize("stopped", [False, True])
def test_an_alarm_of_the_caller_still_rings(alarm, stopped):
    with stop_on_signal(lambda reason: None, grace=10):
        if stopped:
            os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    assert alarm == [1]
