"""Metrics in long form: `frames,key,value`, one row each, append-only."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from pydantic import BaseModel

from rlcore.context import Context
from rlcore.errors import ConfigError

HEADER: Final = ("frames", "key", "value")
WALL_CLOCK: Final = "time/"


class CSVLogger:
    """Writes `metrics.csv`, and wall-clock figures (`time/…`) to `timings.csv`, into the run folder.

    The first file is the same for two equal runs. On resume both are cut back to the checkpoint.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        if context.run.folder is None:
            raise ConfigError("the csv logger needs a run folder")
        self._metrics = _Table(context.run.folder / "metrics.csv")
        self._timings = _Table(context.run.folder / "timings.csv")

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Append a row per metric; the shortest form that reads back as the same number."""
        self._metrics.append(step, {k: v for k, v in metrics.items() if not k.startswith(WALL_CLOCK)})
        self._timings.append(step, {k: v for k, v in metrics.items() if k.startswith(WALL_CLOCK)})

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Do nothing: the resolved config is in the run folder already."""

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._metrics.flush()
        self._timings.flush()

    def close(self) -> None:
        """Flush and close."""
        self._metrics.close()
        self._timings.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the length of both files in bytes."""
        return {"metrics": self._metrics.size(), "timings": self._timings.size()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut both files back."""
        self._metrics.cut(state["metrics"])
        self._timings.cut(state["timings"])


class _Table:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: TextIO | None = None

    def append(self, step: int, row: Mapping[str, float]) -> None:
        if row:
            csv.writer(self._open(), lineterminator="\n").writerows((step, key, repr(v)) for key, v in row.items())

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def size(self) -> int:
        self.flush()
        return self._path.stat().st_size if self._path.exists() else 0

    def cut(self, size: int) -> None:
        self.close()
        if self._path.exists():
            os.truncate(self._path, size)

    def _open(self) -> TextIO:
        if self._stream is None:
            new = not self._path.exists() or not self._path.stat().st_size
            self._stream = self._path.open("a", newline="")
            if new:
                csv.writer(self._stream, lineterminator="\n").writerow(HEADER)
        return self._stream
