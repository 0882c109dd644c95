"""The curves of a run in arrays, which grow with its table, and of which a chart gets as many points as it can show."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from rlcore_plugin_reports import Line, points

from rlcore_plugin_console.growing import GrowingRows, rows_of

# of all runs that are kept; a row takes 16 bytes
_MOST_ROWS: Final = 12_000_000
# no run gets there, but its table may be made up
_MOST_PLACE: Final = 2**53


class Metrics:
    """The curves of `metrics.csv` of one run.

    Args:
        folder: of the run.

    Attributes:
        lock: to hold while the curves are used.
        beginnings: how often the table was read from its first row again.
    """

    def __init__(self, folder: Path) -> None:
        self._rows = GrowingRows(folder / "metrics.csv")
        self._columns: dict[str, tuple[array[int], array[float]]] = {}
        self._thinned: dict[tuple[str, int], tuple[int, dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self.beginnings = 0

    @property
    def size(self) -> int:
        """How many rows are kept."""
        return sum(len(places) for places, _ in self._columns.values())

    @property
    def names(self) -> list[str]:
        """The metrics, in the order in which they were first written."""
        return list(self._columns)

    def read(self) -> None:
        """Read what was appended."""
        if self._rows.began_again():
            self.beginnings += 1
            self._rows.forget()
            self._columns.clear()
            self._thinned.clear()
        for lines in self._rows.news():
            self._add(*_parsed(lines))

    def _add(self, places: np.ndarray, keys: Sequence[str], values: np.ndarray) -> None:
        """Append rows to the columns of their keys, all of a key at once."""
        if not keys:
            return
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        of_rows = np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))
        order = np.argsort(of_rows, kind="stable")
        ends = np.cumsum(np.bincount(of_rows, minlength=len(numbers)))
        for key, rows in zip(numbers, np.split(order, ends[:-1]), strict=True):
            column = self._columns.setdefault(key, (array("q"), array("d")))
            column[0].frombytes(places[rows].tobytes())
            column[1].frombytes(values[rows].tobytes())

    def curve(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Return places and values of a metric; where a place was written twice, the later value."""
        places, values = (np.array(column) for column in self._columns.get(key, (array("q"), array("d"))))
        if places.size and (np.diff(places) <= 0).any():
            order = np.argsort(places, kind="stable")
            places, values = places[order], values[order]
            last = np.append(np.diff(places) > 0, True)
            places, values = places[last], values[last]
        return places, values

    def drawn(self, key: str, most: int) -> dict[str, Any]:
        """Return the points of a metric that a chart draws, as `points` of reports does."""
        rows = len(self._columns[key][0])
        known = self._thinned.get((key, most))
        if known is None or known[0] != rows:
            known = self._thinned[key, most] = (rows, drawn(*self.curve(key), most))
        return known[1]


def _parsed(lines: str) -> tuple[np.ndarray, Sequence[str], np.ndarray]:
    """Return places, keys and values of rows, without those that a crash cut off."""
    cells = lines.rstrip("\n").replace("\n", ",").split(",")
    try:
        # no list for each row: there are a million of them
        places, keys, values = cells[0::3], cells[1::3], cells[2::3]
        if len(cells) == 3 * lines.count("\n") and '"' not in lines:
            return np.array(list(map(int, places)), np.int64), keys, np.array(list(map(float, values)))
    except (ValueError, OverflowError):
        pass  # one of them is no row
    kept = [row for row in map(_row, rows_of(lines)) if row is not None]
    return (
        np.array([place for place, _, _ in kept], np.int64),
        [key for _, key, _ in kept],
        np.array([value for _, _, value in kept], float),
    )


def _row(row: list[str]) -> tuple[int, str, float] | None:
    try:
        place, value = int(row[0]), float(row[2])
    except (IndexError, ValueError):
        return None
    return (place, row[1], value) if -_MOST_PLACE < place < _MOST_PLACE else None


def drawn(places: np.ndarray, values: np.ndarray, most: int) -> dict[str, Any]:
    """Return the points of a line that a chart draws; values that are not finite are left out."""
    kept = np.isfinite(values)
    x, y = places[kept].astype(float), values[kept]
    return points(Line("", x, y, y, y), most)


class MetricsOfRuns:
    """The curves of the runs that were looked at last, as many as there is room for."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Path, Metrics] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: Path) -> Metrics:
        """Return the curves of a run folder, with what was appended to them; hold their lock while you use them."""
        with self._lock:
            metrics = self._runs.setdefault(folder, Metrics(folder))
            self._runs.move_to_end(folder)
        with metrics.lock:
            metrics.read()
        with self._lock:
            while len(self._runs) > 1 and sum(each.size for each in self._runs.values()) > _MOST_ROWS:
                self._runs.popitem(last=False)
        return metrics
