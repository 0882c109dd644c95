"""Signals that ask a command to stop which has runs in processes of their own: it passes them on, and waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rlcore.process import interrupts
from rlcore.process.signals import ALWAYS, STOPPING


@contextmanager
def collected_stops() -> Iterator[list[int]]:
    """Collect the signals that ask to stop, instead of what they do otherwise; in the main thread alone.

    Those that the caller ignores, as under `nohup`, stay ignored.

    Yields:
        The numbers of the signals that came, a list that grows.
    """
    received: list[int] = []

    def take(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        now = {number: signal.getsignal(number) for number in STOPPING}
        before = {number: handler for number, handler in now.items() if number in ALWAYS or handler != signal.SIG_IGN}
    for number in before:
        signal.signal(number, take)
    interrupts.hand_over()
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
