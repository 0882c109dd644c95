"""Ctrl-C and termination: the first asks the run to stop at its next safe point, a second Ctrl-C stops at once.

When the safe point does not come within the grace time, the iteration is given up where it is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rlcore.errors import Interruption

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopAtOnce(KeyboardInterrupt, Interruption):
    """The second Ctrl-C: the process ends, and nothing more is written."""


class GraceExpired(Interruption):
    """The grace time after a signal is over; no error of the run, so nothing may catch it as one."""


@contextmanager
def stop_on_signal(request_stop: Callable[[str], None], grace: float = 20.0) -> Iterator[list[int]]:
    """Call `request_stop` on SIGINT and SIGTERM; yields the signals received.

    Only the main thread can handle signals; elsewhere this does nothing. Previous handlers are put back.

    Args:
        request_stop: called with the signal's name.
        grace: seconds from the first signal until `GraceExpired` is raised.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    previous: dict[int, Any] = {}
    alarm = (0.0, 0.0)

    def handle(number: int, frame: object) -> None:
        nonlocal alarm
        received.append(number)
        if number == signal.SIGINT and received.count(number) > 1:
            raise StopAtOnce
        request_stop(signal.Signals(number).name)
        if len(received) == 1:  # only now, so that a caller's own alarm works as before in a run that nothing stops
            previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, expire)
            alarm = signal.setitimer(signal.ITIMER_REAL, grace)

    def expire(number: int, frame: object) -> None:
        raise GraceExpired(f"no safe point within {grace:g} s of {signal.Signals(received[0]).name}")

    for number in SIGNALS:
        previous[number] = signal.signal(number, handle)
    try:
        yield received
    finally:
        if received:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for installed, handler in previous.items():
            signal.signal(installed, handler)
        if received:
            signal.setitimer(signal.ITIMER_REAL, *alarm)
