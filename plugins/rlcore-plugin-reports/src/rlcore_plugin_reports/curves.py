"""Curves of runs, read from their `metrics.csv`, or from their evaluations alone; means over several."""

from __future__ import annotations

import csv
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlcore.errors import ConfigError, StorageError
from rlcore.files import plain_file
from rlcore_plugin_reports.tables import EVALUATIONS, differences

log = logging.getLogger(__name__)

TRAINING: Final = (
    ("episode/return", "training: episode return"),
    ("episode/length", "training: episode length (steps)"),
)
EVALUATION: Final = (
    ("evaluation/return", "evaluation: return"),
    ("evaluation/length", "evaluation: episode length (steps)"),
)

# the column of evaluations that names the policy, where there are several
_POLICY: Final = "policy"

Curve = dict[int, float]


def panels(recorded: Collection[str]) -> list[tuple[str, str]]:
    """Return key and title of the four metrics that are shown first: two of training, and then two of evaluations.

    Where no episode was trained on, as in runs that learn from a dataset, they are losses, or the norm of the gradient.

    Args:
        recorded: the metrics of all the runs that are shown.
    """
    training = list(TRAINING)
    if not any(key in recorded for key, _ in TRAINING):
        losses = sorted(key for key in recorded if key.startswith("train/loss") and key.count("/") == 1)
        norm = [key for key in ("train/grad_norm",) if key in recorded]
        shown = [(key, key.replace("train/", "training: ")) for key in [*losses, *norm][: len(TRAINING)]]
        training[: len(shown)] = shown
    return [*training, *EVALUATION]


def read_metrics(run: Path) -> dict[str, Curve]:
    """Return metric to (frames to value) of a run folder.

    Without a logger that writes `metrics.csv` there are the evaluations, which every run keeps. A table that is not as
    the newest checkpoint says is read, and a warning says so.

    Raises:
        ConfigError: the folder has neither.
    """
    for difference in differences(run):
        log.warning("%s", difference)
    file = run / "metrics.csv"
    if not file.is_file():
        return read_evaluations(run)
    return _curves(file)


def read_timings(run: Path) -> dict[str, Curve]:
    """Return what took how long, as metric to (frames to value); empty where no logger wrote it."""
    file = run / "timings.csv"
    try:
        return _curves(file) if file.is_file() else {}
    except ConfigError:
        return {}


def _curves(file: Path) -> dict[str, Curve]:
    """Return metric to (frames to value) of a table of `frames,key,value`."""
    curves: dict[str, Curve] = defaultdict(dict)
    for row in _rows(file):
        try:
            curves[row["key"]][_place(row)] = float(row["value"])
        except (KeyError, TypeError, ValueError):
            continue  # a row that a crash cut off
    return dict(curves)


def read_evaluations(run: Path) -> dict[str, Curve]:
    """Return mean return and length of each evaluation, and the mean return of each policy where there are several."""
    file = run / EVALUATIONS
    if not file.is_file():
        raise ConfigError(
            f"{run} has no metrics.csv and no {EVALUATIONS}; add a section [[logger]] with use = 'csv' to its config"
        )
    by_name: dict[str, dict[int, list[float]]] = {"return": defaultdict(list), "length": defaultdict(list)}
    for row in _rows(file):
        try:
            frames, figures = _place(row), {column: float(row[column]) for column in ("return", "length")}
        except (KeyError, TypeError, ValueError):
            continue  # a row that a crash cut off
        if policy := row.get(_POLICY):
            figures[f"return/{policy}"] = figures["return"]
        for name, figure in figures.items():
            by_name.setdefault(name, defaultdict(list))[frames].append(figure)
    return {
        f"evaluation/{name}": {frames: sum(each) / len(each) for frames, each in values.items()}
        for name, values in by_name.items()
    }


def _place(row: dict[str, str]) -> int:
    """Return where the run was at a row of a table: its frames, or its updates where it is counted in them."""
    return int(row["frames"] if "frames" in row else row["updates"])


def _rows(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table.

    Raises:
        ConfigError: it cannot be read, or is none.
    """
    try:
        with plain_file(file) as stream, TextIOWrapper(stream, "utf-8", errors="replace", newline="") as text:
            yield from csv.DictReader(text)
    except (OSError, StorageError, csv.Error) as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error}") from error


def mean_and_spread(curves: Sequence[Curve]) -> tuple[Any, Any, Any, Any]:
    """Return frames, mean, lowest and highest over runs, at the frames that every curve spans."""
    grid = np.asarray(sorted({frames for curve in curves for frames in curve}), dtype=float)
    begin, end = max(min(curve) for curve in curves), min(max(curve) for curve in curves)
    grid = grid[(grid >= begin) & (grid <= end)]
    lines = np.stack([np.interp(grid, list(curve), list(curve.values())) for curve in curves])
    return grid, lines.mean(0), lines.min(0), lines.max(0)
