"""The latest and the best evaluation of a run, over all its resumes, and the table of all their episodes."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore.files.growing import NOTHING
from rlcore.files.table import Table
from rlcore.types.progress import Clock
from rlcore.types.records import EvaluationResult

log = logging.getLogger(__name__)

TABLE: Final = "evaluations.csv"
COLUMNS: Final = ("frames", "seed", "return", "length")
POLICY: Final = "policy"


def better(new: float, old: float | None) -> bool:
    """Return whether a mean return is better than an earlier one, which may be absent, or not a number."""
    return old is None or math.isnan(old) or new > old


class Evaluations:
    """Keeps two evaluations, and writes the episodes of all of them.

    Args:
        folder: of `evaluations.csv`, a row per episode: `frames,seed,return,length`; None to write none.
        clock: of the run; the first column is called so.
        policies: whether the run has several; the last column is then `policy`, the name of the one that acted.

    Attributes:
        last: the latest.
        best: the one with the highest mean return, of those after the first update.
        differences: how often a resume found the table to be another than that of its checkpoint.
        observer: True; evaluations do not change what is trained.
    """

    observer: Final = True

    def __init__(self, folder: Path | None = None, clock: Clock = "frames", policies: bool = False) -> None:
        self.last: EvaluationResult | None = None
        self.best: EvaluationResult | None = None
        self.differences = 0
        self._table = None if folder is None else _OwnTable(folder / TABLE, clock, policies)

    def take(self, result: EvaluationResult, trained: bool) -> None:
        """Take a new evaluation in, and write its episodes.

        Args:
            result: the evaluation.
            trained: whether an update came before it; what was never trained is never the best.

        Raises:
            StorageError: they cannot be written.
        """
        self.last = result
        if self._table is not None:
            self._table.append(result)
        if trained and (self.best is None or better(result.mean_return, self.best.mean_return)):
            self.best = result

    def files(self) -> list[Path]:
        """Return the files that a checkpoint counts on."""
        return [] if self._table is None else [self._table.file.path]

    def begin_anew(self) -> None:
        """Begin the table again; rows that are there keep a place under another name."""
        if self._table is not None:
            self._table.begin_anew()

    def state_dict(self) -> dict[str, Any]:
        """Return both, and the length and the checksum of the table."""
        table = NOTHING if self._table is None else self._table.position()
        both = {name: result and asdict(result) for name, result in (("last", self.last), ("best", self.best))}
        return {**both, "written": table["size"], "xxh3": table["xxh3"]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set both, and cut off what was written to the table since; say what else differs there."""
        self.last, self.best = (state[name] and EvaluationResult(**state[name]) for name in ("last", "best"))
        if self.best is not None and not self.best.frames:  # an old checkpoint may say that of the untrained one
            self.best = None
        if self._table is None:
            return
        position = {"size": state["written"], "xxh3": state.get("xxh3") or None}  # older ones know the length alone
        if difference := self._table.go_back(position):
            self.differences += 1
            log.warning("%s; the run goes on", difference)


class _OwnTable:
    """A CSV file that ends where this run stands; what another run left behind there gets another name."""

    def __init__(self, path: Path, clock: Clock, policies: bool) -> None:
        self._table = Table(path, (clock, *COLUMNS[1:], *([POLICY] if policies else [])))
        self.file = self._table.file
        self._placed = False

    def append(self, result: EvaluationResult) -> None:
        """Write a row per episode; a figure has the shortest form that reads back as the same number."""
        try:
            if not self._placed:
                self.begin_anew()
            episodes = zip(result.seeds, result.returns, result.lengths, strict=True)
            rows = [(result.frames, seed, repr(float(return_)), int(length)) for seed, return_, length in episodes]
            named = zip(rows, result.policies, strict=True) if result.policies else ()
            self._table.append([(*row, policy) for row, policy in named] or rows)
            self.file.flush()
        except OSError as error:
            raise StorageError(f"{self.file.path} cannot be written: {error}; free the place, and resume") from error

    def begin_anew(self) -> None:
        """Begin with an empty table; one that is there keeps its rows under another name, aloud."""
        self._placed = True
        if aside := self.file.set_aside():
            log.warning("the run starts over; the table of another one that was here is now %s", aside)

    def go_back(self, position: Mapping[str, Any]) -> str:
        """Cut off what came after a position, and return what else is not as it was."""
        self._placed = True
        return self.file.go_back(position)

    def position(self) -> dict[str, Any]:
        """Return the length and the checksum of what counts."""
        return self.file.position() if self._placed else dict(NOTHING)
