"""Ctrl-C and termination: the first asks the run to stop at the end of its iteration, a second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signal(request_stop: Callable[[str], None]) -> Iterator[list[int]]:
    """Call `request_stop` on SIGINT and SIGTERM; yields the signals received.

    Only the main thread can handle signals; elsewhere this does nothing. Previous handlers are put back.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(number: int, frame: object) -> None:
        received.append(number)
        if number == signal.SIGINT and received.count(number) > 1:
            raise KeyboardInterrupt
        request_stop(signal.Signals(number).name)

    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
