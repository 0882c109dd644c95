"""The newest and the best evaluation of a run, over all its resumes, and the table of all their episodes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore.records import EvaluationResult

TABLE: Final = "evaluations.csv"
COLUMNS: Final = ("frames", "seed", "return", "length")


def better(new: float, old: float | None) -> bool:
    """Return whether a mean return is better than an earlier one, which may be absent, or not a number."""
    return old is None or math.isnan(old) or new > old


class Evaluations:
    """Keeps two evaluations, and writes the episodes of all of them.

    Args:
        folder: of `evaluations.csv`, a row per episode: `frames,seed,return,length`; None to write none.

    Attributes:
        last: the newest.
        best: the one with the highest mean return.
        observer: True; evaluations do not change what is trained.
    """

    observer: Final = True

    def __init__(self, folder: Path | None = None) -> None:
        self.last: EvaluationResult | None = None
        self.best: EvaluationResult | None = None
        self._table = None if folder is None else _Table(folder / TABLE)

    def take(self, result: EvaluationResult) -> None:
        """Take a new evaluation in, and write its episodes.

        Raises:
            StorageError: they cannot be written.
        """
        self.last = result
        if self._table is not None:
            self._table.append(result)
        if self.best is None or better(result.mean_return, self.best.mean_return):
            self.best = result

    def state_dict(self) -> dict[str, Any]:
        """Return both, and how long the table is."""
        written = 0 if self._table is None else self._table.size
        return {"last": self.last and asdict(self.last), "best": self.best and asdict(self.best), "written": written}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set both, and cut off what was written to the table since."""
        self.last, self.best = (state[name] and EvaluationResult(**state[name]) for name in ("last", "best"))
        if self._table is not None:
            self._table.cut(state["written"])


class _Table:
    """A CSV file that ends where this run stands; what another run left behind there is overwritten.

    Attributes:
        size: in bytes, of what counts.
    """

    def __init__(self, path: Path) -> None:
        self.size = 0
        self._path = path

    def append(self, result: EvaluationResult) -> None:
        """Write a row per episode; a figure has the shortest form that reads back as the same number."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if self.size == 0:
            writer.writerow(COLUMNS)
        for seed, return_, length in zip(result.seeds, result.returns, result.lengths, strict=True):
            writer.writerow((result.frames, seed, repr(float(return_)), int(length)))
        try:
            if not self._path.parent.is_dir():
                self._path.parent.mkdir(parents=True)
            with self._path.open("r+b" if self._path.exists() else "wb") as stream:
                stream.seek(self.size)
                stream.truncate()
                stream.write(text.getvalue().encode())
                self.size = stream.tell()
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error}; free the place, and resume") from error

    def cut(self, size: int) -> None:
        """Go back to a size. A file that is shorter, or gone, keeps what it has."""
        here = self._path.stat().st_size if self._path.exists() else 0
        self.size = min(size, here)
        if here > self.size:
            with self._path.open("r+b") as stream:
                stream.truncate(self.size)
