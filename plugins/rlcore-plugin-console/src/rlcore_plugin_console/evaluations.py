"""The evaluations of a run, from the table with a row for each episode that every run keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore_plugin_console.growing import GrowingRows, rows_of

# no run gets there, but its table may be made up
_MOST_PLACE: Final = 2**53


@dataclass
class Evaluation:
    """The episodes that were played at one place of a run.

    Attributes:
        returns: of all episodes, added up.
        lengths: likewise, in steps.
        low: the lowest return.
        high: the highest return.
        episodes: how many.
    """

    returns: float = 0.0
    lengths: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    episodes: int = 0

    @property
    def mean(self) -> float:
        """The mean return."""
        return self.returns / self.episodes


class Evaluations:
    """The evaluations of a run by frame, or by update where the run counts them.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._rows = GrowingRows(folder / "evaluations.csv")
        self.by_place: dict[int, Evaluation] = {}

    def read(self) -> None:
        """Read what was appended."""
        if self._rows.began_again():
            self._rows.forget()
            self.by_place.clear()
        for lines in self._rows.news():
            header = self._rows.header
            try:
                clock = header.index("frames" if "frames" in header else "updates")
                columns = clock, header.index("return"), header.index("length")
            except ValueError:
                return  # it is no table of evaluations
            for row in rows_of(lines):
                self._add(row, *columns)

    def _add(self, row: list[str], clock: int, returns: int, lengths: int) -> None:
        try:
            place, value, length = int(row[clock]), float(row[returns]), float(row[lengths])
        except (IndexError, ValueError):
            return  # a row that a crash cut off
        if not -_MOST_PLACE < place < _MOST_PLACE:
            return
        each = self.by_place.get(place)
        if each is None:
            each = self.by_place[place] = Evaluation()
        each.returns += value
        each.lengths += length
        if value < each.low:
            each.low = value
        if value > each.high:
            each.high = value
        each.episodes += 1

    def finite(self) -> dict[int, Evaluation]:
        """Return those with a finite mean, by place."""
        return {place: each for place, each in sorted(self.by_place.items()) if math.isfinite(each.mean)}

    def curves(self) -> dict[str, dict[int, float]]:
        """Return mean return and mean length over the frames, as metrics of reports."""
        places = sorted(self.by_place.items())
        if not places:
            return {}
        return {
            "evaluation/return": {place: each.mean for place, each in places},
            "evaluation/length": {place: each.lengths / each.episodes for place, each in places},
        }
