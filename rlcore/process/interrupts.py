"""Ctrl-C while a command starts: raised after the end of an import, which might swallow it or be left half done."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Final

# seconds: between two signals to the main thread; until an import is interrupted all the same
_LOOK: Final = 0.05
_IMPORT: Final = 20.0


class _Listener:
    """Handles SIGINT from the start of the program until the command has a handler of its own.

    Attributes:
        first_at: time of the first signal; None before it.
        settled: whether the exit code is known, so that a signal is ignored.
    """

    def __init__(self) -> None:
        self.first_at: float | None = None
        self.settled = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt`, or after the end of a running import."""
        if self.settled:
            return
        first = self.first_at is None
        self.first_at = self.first_at or time.monotonic()
        if not importing(frame) or time.monotonic() > self.first_at + _IMPORT:
            raise KeyboardInterrupt
        if first:
            threading.Thread(target=self._send_again, name="rlcore interrupt", daemon=True).start()

    def _send_again(self) -> None:
        """Send the signal again until it is raised, or until a command has its handler and calls `hand_over`."""
        main = threading.main_thread().ident or 0
        while self.first_at is not None and signal.getsignal(signal.SIGINT) == self.handle:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(_LOOK)


_LISTENER: Final = _Listener()


def listen() -> None:
    """Handle SIGINT from now on, unless the caller ignores it or handles it."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _LISTENER.handle)


def hand_over() -> None:
    """Send an earlier SIGINT to the handler of the command, as an import may have swallowed it."""
    first_at, _LISTENER.first_at = _LISTENER.first_at, None
    if first_at is not None:
        signal.raise_signal(signal.SIGINT)


def settle() -> None:
    """Ignore SIGINT from now on, as the exit code is known."""
    _LISTENER.settled = True


def importing(frame: FrameType | None = None) -> bool:
    """Return whether a frame, or the caller, runs inside an import."""
    frame = frame or sys._getframe()
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None
