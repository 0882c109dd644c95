"""The figures of each task: scores of its methods over seeds, curves with bands, when a threshold was reached."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rlcore_plugin_reports import Estimate, Line, estimates, standard_deviation

from rlcore.errors import ConfigError
from rlcore_plugin_bench.bench_file import BenchFile, Method
from rlcore_plugin_bench.identity import differences, identity_of
from rlcore_plugin_bench.row import Row
from rlcore_plugin_bench.stored_row import Curve, StoredRow, read_row

# points of a line of a picture, and resamplings for the band at each
_POINTS: Final = 60
_RESAMPLED: Final = 2_000


@dataclass(frozen=True)
class MethodFigures:
    """What a method reached on a task.

    Attributes:
        name: of the method.
        title: on the page.
        rows: the finished rows, by seed; of a published method none.
        stale: seeds whose rows depended on something that is otherwise now; they are left out.
        scores: one per seed; of a published method the values that there are.
        mean: over the seeds.
        deviation: standard deviation over the seeds; None of a single one.
        count: of the seeds; None where a published mean does not say.
        figures: mean, median and iqm with their 95% intervals; empty of a published mean.
        reached: by row with a curve: frames and seconds at which the threshold was reached; None where it was not.
        source: of a published method.
    """

    name: str
    title: str
    rows: Sequence[StoredRow]
    stale: Sequence[int]
    scores: Sequence[float]
    mean: float
    deviation: float | None
    count: int | None
    figures: dict[str, Estimate]
    reached: Sequence[tuple[int, float | None] | None]
    source: str | None

    def frames_to_threshold(self) -> float | None:
        """Return the median of the frames to the threshold; infinite where half of the rows never reached it."""
        return _median([None if each is None else each[0] for each in self.reached])

    def seconds_to_threshold(self) -> float | None:
        """Return the median of the seconds to the threshold; None where they were not recorded."""
        if any(each is not None and each[1] is None for each in self.reached):
            return None
        return _median([None if each is None else each[1] for each in self.reached])


@dataclass(frozen=True)
class TaskFigures:
    """What the methods of a task reached.

    Attributes:
        file: the bench file.
        name: of the task.
        methods: those of which there is anything, in the order of the file.
    """

    file: BenchFile
    name: str
    methods: Sequence[MethodFigures]

    @property
    def title(self) -> str:
        """What the page calls it."""
        return self.file.task[self.name].title or self.name

    def lines(self) -> list[Line]:
        """Return a line with a 95% band for each method with curves, at places that all of its curves span."""
        curves = {method.title: [row.curve for row in method.rows if row.curve] for method in self.methods}
        return [line_of(title, each) for title, each in curves.items() if each]

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "task": self.name,
            "title": self.title,
            "threshold": self.file.task[self.name].threshold,
            "methods": [_as_json(method) for method in self.methods],
        }


def figures_of(files: Sequence[BenchFile]) -> list[TaskFigures]:
    """Return the figures of all tasks, from the rows that are stored alone.

    Raises:
        ConfigError: two files have a task of one name.
    """
    tasks: dict[str, TaskFigures] = {}
    for file in files:
        for name in file.task:
            if name in tasks:
                raise ConfigError(f"task {name!r} is in {tasks[name].file.path} and in {file.path}; rename one of them")
            tasks[name] = TaskFigures(file, name, list(_methods(file, name)))
    return list(tasks.values())


def _methods(file: BenchFile, task: str) -> Iterator[MethodFigures]:
    for name, how in file.methods_of(task):
        if how.kind == "published":
            yield _published(name, how)
            continue
        rows, stale = _rows(file, task, name, how)
        if rows or stale:
            yield _measured(name, how, rows, stale, file.task[task].threshold)


def _rows(file: BenchFile, task: str, name: str, how: Method) -> tuple[list[StoredRow], list[int]]:
    """Return the rows of a method, of all seeds that are stored, and the seeds of those that are stale."""
    rows, stale = [], []
    folder = Row(file, task, name, 0, how).stored.parent
    seeds = sorted(int(path.name.removeprefix("seed-").partition(".")[0]) for path in folder.glob("seed-*.json.gz"))
    for seed in seeds:
        row = Row(file, task, name, seed, how)
        stored = read_row(row.stored)
        assert stored is not None
        if stored.inputs and _is_stale(row, stored):
            stale.append(seed)
        else:
            rows.append(stored)
    return rows, stale


def _is_stale(row: Row, stored: StoredRow) -> bool:
    """Return whether the config of a row changed since; versions do not count: a page is the same on every machine."""
    return any(differences(stored.inputs, identity_of(row, None), versions=False))


def _published(name: str, how: Method) -> MethodFigures:
    scores = np.asarray(how.values, dtype=float)
    mean = how.mean if how.mean is not None else float(scores.mean())
    return MethodFigures(
        name=name,
        title=how.title or name,
        rows=[],
        stale=[],
        scores=how.values,
        mean=mean,
        deviation=standard_deviation(scores) if scores.size else how.std,
        count=scores.size or how.runs,
        figures=estimates(scores) if scores.size else {},
        reached=[],
        source=how.source,
    )


def _measured(
    name: str, how: Method, rows: Sequence[StoredRow], stale: Sequence[int], threshold: float | None
) -> MethodFigures:
    scores = np.asarray([row.score for row in rows], dtype=float)
    reached = [] if threshold is None else [_first(row.curve, threshold) for row in rows if row.curve is not None]
    return MethodFigures(
        name=name,
        title=how.title or name,
        rows=rows,
        stale=stale,
        scores=[row.score for row in rows],
        mean=float(scores.mean()) if scores.size else math.nan,
        deviation=standard_deviation(scores) if scores.size else None,
        count=len(rows),
        figures=estimates(scores) if scores.size else {},
        reached=reached,
        source=None,
    )


def _first(curve: Curve, threshold: float) -> tuple[int, float | None] | None:
    """Return frames and seconds of the first point that is at least the threshold."""
    points = zip(curve.at, curve.returns, curve.seconds, strict=True)
    return next(((at, seconds) for at, value, seconds in points if value >= threshold), None)


def _median(values: Sequence[float | None]) -> float | None:
    """Return the median, in which what was never reached is infinite; None of nothing."""
    return statistics.median(math.inf if value is None else float(value) for value in values) if values else None


def line_of(name: str, curves: Sequence[Curve]) -> Line:
    """Return the mean of curves with the 95% interval of it at each place; of one curve without a band.

    Args:
        name: of the line.
        curves: one per seed; between two points a curve is straight.
    """
    begin, end = max(curve.at[0] for curve in curves), min(curve.at[-1] for curve in curves)
    ats = np.unique(np.concatenate([curve.at for curve in curves]))
    ats = ats[(ats >= begin) & (ats <= end)].astype(float)
    if ats.size > _POINTS:
        ats = ats[np.linspace(0, ats.size - 1, _POINTS).round().astype(int)]
    values = np.stack([np.interp(ats, curve.at, curve.returns) for curve in curves])
    each = [estimates(column, repetitions=_RESAMPLED)["mean"] for column in values.T]
    mean = np.asarray([estimate.value for estimate in each])
    low = np.asarray([estimate.value if estimate.low is None else estimate.low for estimate in each])
    high = np.asarray([estimate.value if estimate.high is None else estimate.high for estimate in each])
    return Line(name, ats, mean, low, high)


def _as_json(method: MethodFigures) -> dict[str, Any]:
    frames, seconds = method.frames_to_threshold(), method.seconds_to_threshold()
    return {
        "method": method.name,
        "title": method.title,
        "seeds": [row.seed for row in method.rows],
        "stale": list(method.stale),
        "scores": list(method.scores),
        "mean": None if math.isnan(method.mean) else method.mean,
        "std": method.deviation,
        "count": method.count,
        **{
            name: {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            for name, estimate in method.figures.items()
            if name != "mean"
        },
        "mean_interval": _interval(method.figures.get("mean")),
        "frames_to_threshold": None if frames is None or math.isinf(frames) else frames,
        "seconds_to_threshold": None if seconds is None or math.isinf(seconds) else seconds,
        "reached": sum(each is not None for each in method.reached),
        "source": method.source,
    }


def _interval(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None or estimate.low is None or estimate.high is None else [estimate.low, estimate.high]
