"""Ctrl-C while a command starts: it waits for the end of an import, which may swallow it, or be left half done."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Final

# seconds: between two looks at an import; for an import to end
_LOOK: Final = 0.05
_IMPORT: Final = 20.0


class _Listener:
    """The handler of SIGINT from the start of the program until a command has one of its own.

    Attributes:
        came: when the first signal did; None while none has.
        settled: whether the exit code is known, so that a signal changes nothing.
    """

    def __init__(self) -> None:
        self.came: float | None = None
        self.settled = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt`, after the end of an import."""
        if self.settled:
            return
        first = self.came is None
        self.came = self.came or time.monotonic()
        if not importing(frame) or time.monotonic() > self.came + _IMPORT:
            raise KeyboardInterrupt
        if first:
            threading.Thread(target=self._send_again, name="rlcore interrupt", daemon=True).start()

    def _send_again(self) -> None:
        """Send the signal until it can be raised, or another handler is there, which asks for it."""
        main = threading.main_thread().ident or 0
        while self.came is not None and signal.getsignal(signal.SIGINT) == self.handle:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(_LOOK)


_LISTENER: Final = _Listener()


def listen() -> None:
    """Handle SIGINT from now on, unless the caller ignores it or has a handler."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _LISTENER.handle)


def hand_over() -> None:
    """Send a SIGINT that came before to the handler that is there now; what started meanwhile may have swallowed it."""
    came, _LISTENER.came = _LISTENER.came, None
    if came is not None:
        signal.raise_signal(signal.SIGINT)


def settle() -> None:
    """Let no later SIGINT change the exit code, which is known."""
    _LISTENER.settled = True


def importing(frame: FrameType | None = None) -> bool:
    """Return whether a frame, or the caller, is called by an import."""
    frame = frame or sys._getframe()
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None
