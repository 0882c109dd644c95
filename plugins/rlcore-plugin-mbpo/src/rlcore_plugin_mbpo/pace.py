"""When something is due that a buffer does at intervals, as a part of its state."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore.types import Every, Progress


class Pace:
    """Says when something is due: at first at once, then at every multiple of its interval.

    Args:
        interval: as for `Every`; None for once.

    Attributes:
        next: value of the clock at which it is due again; None where it is due now. It belongs to the state.
    """

    def __init__(self, interval: int | Mapping[str, int] | None) -> None:
        self._every = None if interval is None else Every(interval)
        self.next: int | None = None

    def due(self, progress: Progress) -> bool:
        """Return whether it is due; then it is done."""
        every = self._every
        if self.next is not None and (every is None or getattr(progress, every.clock or "now") < self.next):
            return False
        self.next = 0 if every is None else every.next(progress)
        return True
