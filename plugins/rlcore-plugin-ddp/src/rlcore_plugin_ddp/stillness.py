"""Telling who does not move any more from who is slow, wherever ranks wait for each other or are watched."""

from __future__ import annotations

import time
from collections.abc import Hashable


class Stillness:
    """Measures for how long something has not changed; time in which this process itself stood still is none.

    Args:
        mark: what changes as long as it moves.
        look: seconds between two looks; of a longer time no more than twice that is counted, since this process was
            stopped, and perhaps the others with it.
    """

    def __init__(self, mark: Hashable, look: float) -> None:
        self._mark = mark
        self._most = 2 * look
        self._looked = time.monotonic()
        self._seconds = 0.0

    def look(self, mark: Hashable) -> float:
        """Return the seconds since it changed."""
        now = time.monotonic()
        self._seconds = 0.0 if mark != self._mark else self._seconds + min(now - self._looked, self._most)
        self._mark, self._looked = mark, now
        return self._seconds
