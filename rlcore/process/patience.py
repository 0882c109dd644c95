"""Waiting for other threads with a bound that counts only the time in which they could run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# seconds of one wait, short so that a stall shows in how late it returns
_TICK: Final = 0.05
# a wait that returns so much later than it was to: meanwhile a call held the GIL, or the process was stopped
_STALL: Final = 0.5


class Patience:
    """Seconds that may be waited for others, over several waits.

    Time in which this thread could not run either, as when a library holds the GIL, is not counted: what was waited for
    could do nothing in it.

    Args:
        seconds: how long, over all waits.
        stalled: called with the seconds of each longer time in which no thread ran.
    """

    def __init__(self, seconds: float, stalled: Callable[[float], None] = lambda seconds: None) -> None:
        self._left = seconds
        self._stalled = stalled

    def wait(self, done: Callable[[float], bool]) -> bool:
        """Wait until something is done, and return whether it is.

        Args:
            done: waits for at most that many seconds, and returns whether it is done.
        """
        while self._left > 0:
            began = time.monotonic()
            finished = done(min(_TICK, self._left))
            waited = time.monotonic() - began
            self._left -= min(waited, 2 * _TICK)
            if waited > _STALL:
                self._stalled(waited)
            if finished:
                return True
        return done(0)
