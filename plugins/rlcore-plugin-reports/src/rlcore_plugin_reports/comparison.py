"""Several runs compared: the figures of each setting over its seeds, at a frame that all runs reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rlcore.errors import ConfigError, did_you_mean
from rlcore.run_folder import CONFIG_FILE, check_is_run
from rlcore.types import Clock, unit_of
from rlcore_plugin_reports.comparison_notes import notes
from rlcore_plugin_reports.curves import Curve, read_metrics
from rlcore_plugin_reports.differences import labels
from rlcore_plugin_reports.run_files import RunFiles, experiments
from rlcore_plugin_reports.statistics import Estimate, estimates, improvement, standard_deviation

if TYPE_CHECKING:
    from rlcore.types import Array

METRIC: Final = "evaluation/return"


@dataclass(frozen=True)
class Setting:
    """The runs of one setting, and their figures.

    Attributes:
        name: what its config has that the others have not, or the name of its runs.
        runs: its runs.
        curves: of the metric, by run: frames to value.
        scores: `[run]`, the metric at the frame of the comparison.
        areas: `[run]`, the mean of the metric over the frames up to there.
        figures: by name: mean, median, iqm, optimality_gap where there is a target, and area, the mean of `areas`.
        deviation: standard deviation of the scores; None of a single run.
        reached: by run: the frame at which the metric first was at the threshold; None where it never was.
    """

    name: str
    runs: Sequence[RunFiles]
    curves: Sequence[Curve]
    scores: Array
    areas: Array
    figures: dict[str, Estimate]
    deviation: float | None
    reached: Sequence[int | None]


@dataclass(frozen=True)
class Comparison:
    """Settings beside each other.

    Attributes:
        metric: what is compared.
        frame: at which.
        threshold: what the metric is to reach; also the target of the optimality gap. None without.
        settings: in the order of their first runs.
        improvements: by the names of two settings: how probably a run of the first has the higher score.
        notes: what a reader has to know about it, a sentence each.
        clock: what the runs count, frames or updates; what is said of frames here is of them.
    """

    metric: str
    frame: int
    threshold: float | None
    settings: Sequence[Setting]
    improvements: dict[tuple[str, str], Estimate]
    notes: Sequence[str]
    clock: Clock = "frames"

    @property
    def unit(self) -> str:
        """One of what the runs count."""
        return unit_of(self.clock)

    @property
    def begin(self) -> int:
        """The first frame that all runs have."""
        return max(min(curve) for setting in self.settings for curve in setting.curves)


def compare(
    folders: Sequence[Path],
    metric: str = METRIC,
    at: int | None = None,
    threshold: float | None = None,
    read: Callable[[Path], Mapping[str, Curve]] = read_metrics,
) -> Comparison:
    """Compare runs; those whose configs differ in name, folder and seed alone are the sample of one setting.

    Args:
        folders: of the runs.
        metric: higher is better.
        at: frame; default: the last that every run reached.
        threshold: what the metric is to reach.
        read: returns the curves of a run folder by metric.

    Raises:
        ConfigError: a folder is none of a run or named twice, a run has no such metric or has it not at that frame, or
            the runs are of different envs.
    """
    groups = experiments(_runs(folders))
    curves = {run.folder: _curve(run, metric, read(run.folder)) for group in groups.values() for run in group}
    clock = _clock(curves, groups)
    frame = _frame(curves, at, clock[:-1])
    begin = max(min(curve) for curve in curves.values())
    names = labels(groups)
    settings = []
    for key, group in groups.items():
        of_group = [curves[run.folder] for run in group]
        scores = _scores(group, of_group, frame, clock[:-1])
        areas = np.asarray([area(curve, begin, frame) for curve in of_group])
        settings.append(
            Setting(
                name=names[key],
                runs=group,
                curves=of_group,
                scores=scores,
                areas=areas,
                figures={**estimates(scores, threshold), "area": estimates(areas)["mean"]},
                deviation=standard_deviation(scores),
                reached=[] if threshold is None else [_first(curve, threshold, frame) for curve in of_group],
            )
        )
    improvements = {(a.name, b.name): improvement(a.scores, b.scores) for a, b in combinations(settings, 2)}
    said = notes({setting.name: setting.runs for setting in settings}, curves, frame, at is not None, clock[:-1])
    return Comparison(metric, frame, threshold, settings, improvements, said, clock)


def value_at(curve: Curve, frame: int) -> float:
    """Return a metric at a frame; between two that were recorded it is on the line between them."""
    frames = sorted(curve)
    return float(np.interp(frame, frames, [curve[each] for each in frames]))


def area(curve: Curve, begin: int, end: int) -> float:
    """Return the mean of a metric over the frames from `begin` to `end`, by the trapezoidal rule."""
    if begin >= end:
        return value_at(curve, end)
    frames = np.asarray([begin, *(frame for frame in sorted(curve) if begin < frame < end), end], dtype=float)
    values = np.asarray([value_at(curve, int(frame)) for frame in frames])
    return float(((values[1:] + values[:-1]) / 2 * np.diff(frames)).sum() / (end - begin))


def _runs(folders: Sequence[Path]) -> list[RunFiles]:
    """Return the runs of folders, each of them once and all of one env."""
    runs: dict[Path, RunFiles] = {}
    for folder in folders:
        check_is_run(folder)
        place = folder.resolve()
        if place in runs:
            raise ConfigError(f"{str(folder)!r} is named twice; a run counts once")
        runs[place] = RunFiles(folder)
        if not runs[place].config:
            raise ConfigError(
                f"the {CONFIG_FILE} of {str(folder)!r} cannot be read, so nobody knows what it is a run of"
            )
    envs: dict[str, list[str]] = {}
    for run in runs.values():
        envs.setdefault(run.used("env"), []).append(str(run.folder))
    if len(envs) > 1:
        each = "; ".join(f"{env}: {', '.join(names)}" for env, names in envs.items())
        raise ConfigError(
            f"the runs are of different envs, whose returns have no scale in common ({each}); compare those of one env "
            "at a time"
        )
    return list(runs.values())


def _curve(run: RunFiles, metric: str, metrics: Mapping[str, Curve]) -> Curve:
    if metrics.get(metric):
        return metrics[metric]
    known = ", ".join(sorted(metrics)) or "nothing"
    advice = (
        "give its config an [evaluator] with `every`, or name another metric with --metric"
        if metric == METRIC
        else f"name another one with --metric{did_you_mean(metric, metrics)}"
    )
    raise ConfigError(f"{str(run.folder)!r} has no {metric}; {advice}. It has: {known}")


def _clock(curves: dict[Path, Curve], groups: Mapping[str, Sequence[RunFiles]]) -> Clock:
    """Return what all runs count.

    Raises:
        ConfigError: some count frames and others updates.
    """
    by_clock: dict[Clock, RunFiles] = {}
    for group in groups.values():
        for run in group:
            by_clock.setdefault(run.clock, run)
    if len(by_clock) > 1:
        named = " and ".join(f"{str(run.folder)!r} counts {clock}" for clock, run in by_clock.items())
        raise ConfigError(f"{named}, so that there is no place to compare them at; compare runs of one clock")
    return next(iter(by_clock))


def _frame(curves: dict[Path, Curve], at: int | None, unit: str) -> int:
    """Return the frame to compare at: that which was asked for, or the last that all curves reach."""
    begins, ends = ({folder: end(curve) for folder, curve in curves.items()} for end in (min, max))
    first, last = max(begins, key=lambda folder: begins[folder]), min(ends, key=lambda folder: ends[folder])
    if begins[first] > ends[last]:
        raise ConfigError(
            f"the runs have no {unit} in common: {str(last)!r} ends at {ends[last]:,}, {str(first)!r} begins at "
            f"{begins[first]:,}; leave one of them out"
        )
    if at is None:
        return ends[last]
    if at > ends[last]:
        raise ConfigError(
            f"--at {at}: {str(last)!r} ends at {unit} {ends[last]:,}; name that or an earlier one, or leave the run out"
        )
    if at < begins[first]:
        raise ConfigError(f"--at {at}: {str(first)!r} begins at {unit} {begins[first]:,}; name that or a later one")
    return at


def _scores(group: Sequence[RunFiles], curves: Sequence[Curve], frame: int, unit: str) -> Array:
    scores = np.asarray([value_at(curve, frame) for curve in curves])
    for run, score in zip(group, scores, strict=True):
        if not np.isfinite(score):
            raise ConfigError(
                f"{str(run.folder)!r} has {score} at {unit} {frame:,}, of which there is no mean; name an earlier "
                f"{unit} with --at, or leave the run out"
            )
    return scores


def _first(curve: Curve, threshold: float, end: int) -> int | None:
    """Return the first frame up to `end` at which a metric is at least the threshold."""
    return next((frame for frame in sorted(curve) if frame <= end and curve[frame] >= threshold), None)
