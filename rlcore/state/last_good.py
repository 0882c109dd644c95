"""The latest state in which nothing was half done, kept in memory for the case that the next iteration fails."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from rlcore.state.snapshot import Snapshot

# a copy is made when this many times its own cost have passed since the last
_COST_FACTOR: Final = 200
_LARGEST_BYTES: Final = 256 << 20


class LastGoodState:
    """Holds the latest kept snapshot. Keeping costs at most half a percent of the time, so some boundaries pass by.

    The cost of a copy is the least of the last five, so that one that was held up does not put off the next for long.
    A state of more than 256 MiB is not copied; then the latest checkpoint is what a failure leaves.

    Attributes:
        snapshot: the latest one, or None.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._costs: deque[float] = deque(maxlen=5)
        self._next = 0.0
        self._reached = -1

    def due(self, now: int) -> bool:
        """Return whether the time has come to keep the state of this moment of the run's clock."""
        return now != self._reached and time.monotonic() >= self._next

    def keep(self, take: Callable[[], Snapshot]) -> None:
        """Keep a copy of what `take` returns, unless that is too large."""
        began = time.monotonic()
        snapshot = take()
        if snapshot.nbytes > _LARGEST_BYTES:
            self.snapshot, self._next = None, float("inf")
            return
        self.hold(snapshot)
        self._reached = snapshot.reached
        now = time.monotonic()
        first = not self._costs  # it pays for what happens once, so it says nothing about the next
        self._costs.append(now - began)
        self._next = now if first else now + _COST_FACTOR * min(self._costs)

    def hold(self, snapshot: Snapshot) -> None:
        """Copy a state in the place of the one before."""
        self.snapshot = snapshot.copied()
