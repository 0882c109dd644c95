"""Whether rows finish in the time that there is, by how long others took and by the speed of those that run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from rlcore_plugin_bench.row import Row
from rlcore_plugin_bench.running import Running
from rlcore_plugin_bench.sides import side_of
from rlcore_plugin_bench.texts import duration

# seconds that a run trains before its speed counts
_MEASURED: Final = 10.0


class Forecast:
    """Foretells which rows do not finish in time.

    Args:
        max_time: seconds that there are; None for no limit.
        walls: seconds that rows of a task and method took, where some are finished.
    """

    def __init__(self, max_time: float | None, walls: Mapping[tuple[str, str], float]) -> None:
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self._measured = _MEASURED if max_time is None else min(_MEASURED, max_time / 10)
        self._walls = dict(walls)

    def note(self, row: Row, wall: float) -> None:
        """Note the seconds that a row took, for others of its task and method."""
        self._walls.setdefault((row.task, row.method), wall)

    def why_not_begun(self, row: Row) -> str | None:
        """Return why a row is not to begin, as far as others of its method tell; None where it would be in time."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        needs = seconds_left(self._walls.get((row.task, row.method)), *side_of(row).reached(row))
        if left > 0 and (needs is None or needs <= left):
            return None
        takes = "" if needs is None else f"needs about {duration(needs)}, and "
        return f"not begun: {takes}{duration(max(left, 0))} are left"

    def why_stopped(self, running: Running) -> str | None:
        """Return why a run is to stop, by the speed that it has; None where it will be in time."""
        if self._deadline is None:
            return None
        now = time.monotonic()
        needs = self._needs(running, now)
        if now < self._deadline and (needs is None or now + needs <= self._deadline):
            return None
        takes = "" if needs is None else f"needs about {duration(needs)} more, and "
        left = duration(max(0.0, self._deadline - now))
        return f"stopped: {takes}{left} are left; a later run resumes it"

    def _needs(self, running: Running, now: float) -> float | None:
        """Return the seconds that a run still needs at the speed so far; None before that is measured."""
        at, total = side_of(running.row).reached(running.row)
        if running.measured_from is None:
            if at > running.from_frame:
                running.measured_from = now, at
            return None
        since, first = running.measured_from
        if now - since < self._measured or at <= first or not total:
            return None
        seconds_a_frame = (now - since) / (at - first)
        self.note(running.row, total * seconds_a_frame)
        return (total - at) * seconds_a_frame


def seconds_left(wall: float | None, now: int, total: int) -> float | None:
    """Return what is left of the seconds that a whole run takes; all of them where `total`, where it ends, is 0."""
    return wall if wall is None or not total else wall * (1 - now / total)
