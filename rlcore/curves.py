"""Curves of one or several runs on one figure, read from their `metrics.csv`, or from their evaluations alone."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlcore.errors import ConfigError
from rlcore.evaluations import TABLE

PANELS: Final = (
    ("episode/return", "training: episode return"),
    ("episode/length", "training: episode length (steps)"),
    ("evaluation/return", "evaluation: return"),
    ("evaluation/length", "evaluation: episode length (steps)"),
)
_COLOUR: Final = "#3b6ea8"

Curve = dict[int, float]


def read_metrics(run: Path) -> dict[str, Curve]:
    """Return metric to (frames to value) of a run folder.

    Without a logger that writes `metrics.csv` there are the evaluations, which every run keeps.

    Raises:
        ConfigError: the folder has neither.
    """
    file = run / "metrics.csv"
    if not file.is_file():
        return _read_evaluations(run)
    curves: dict[str, Curve] = defaultdict(dict)
    with file.open(newline="") as stream:
        for row in csv.DictReader(stream):
            try:
                curves[row["key"]][int(row["frames"])] = float(row["value"])
            except (KeyError, TypeError, ValueError):
                continue  # a row that a crash cut off
    return dict(curves)


def _read_evaluations(run: Path) -> dict[str, Curve]:
    """Return the mean return and length of each evaluation."""
    file = run / TABLE
    if not file.is_file():
        raise ConfigError(
            f"{run} has no metrics.csv and no {TABLE}; add a section [[logger]] with use = 'csv' to its config"
        )
    found: dict[str, dict[int, list[float]]] = {"return": defaultdict(list), "length": defaultdict(list)}
    with file.open(newline="") as stream:
        for row in csv.DictReader(stream):
            try:
                frames, figures = int(row["frames"]), {column: float(row[column]) for column in found}
            except (KeyError, TypeError, ValueError):
                continue  # a row that a crash cut off
            for column, figure in figures.items():
                found[column][frames].append(figure)
    return {
        f"evaluation/{column}": {frames: sum(each) / len(each) for frames, each in values.items()}
        for column, values in found.items()
    }


def mean_and_spread(curves: Sequence[Curve]) -> tuple[Any, Any, Any, Any]:
    """Return frames, mean, lowest and highest over runs, at the frames that every curve spans."""
    grid = np.asarray(sorted({frames for curve in curves for frames in curve}), dtype=float)
    begin, end = max(min(curve) for curve in curves), min(max(curve) for curve in curves)
    grid = grid[(grid >= begin) & (grid <= end)]
    lines = np.stack([np.interp(grid, list(curve), list(curve.values())) for curve in curves])
    return grid, lines.mean(0), lines.min(0), lines.max(0)


def plot_runs(runs: Sequence[Path], output: Path) -> Path:
    """Draw the four panels: return and length, in training and in evaluation.

    Args:
        runs: run folders; several become their mean, with the range between lowest and highest shaded.
        output: the picture.

    Raises:
        ConfigError: no matplotlib, or a folder without metrics.
    """
    try:
        import matplotlib
    except ImportError:
        raise ConfigError("plots need matplotlib: pip install 'rlcore[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    metrics = [read_metrics(run) for run in runs]
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for axis, (key, title) in zip(axes.flat, PANELS, strict=True):
        _panel(axis, [found[key] for found in metrics if found.get(key)], title)
    name = runs[0].name if len(runs) == 1 else f"{len(runs)} runs: mean, lowest to highest"
    figure.suptitle(name)
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:  # no such folder, or no such format
        raise ConfigError(f"{str(output)!r} cannot be written: {error}") from error
    finally:
        pyplot.close(figure)
    return output


def _panel(axis: Any, curves: list[Curve], title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("frames")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.grid(alpha=0.3)
    if not curves:
        axis.text(0.5, 0.5, "nothing recorded", ha="center", va="center", transform=axis.transAxes, color="grey")
        return
    frames, mean, lowest, highest = mean_and_spread(curves)
    axis.plot(frames, mean, color=_COLOUR, linewidth=1.5, marker="o" if len(frames) < 20 else None, markersize=3)
    if len(curves) > 1:
        axis.fill_between(frames, lowest, highest, color=_COLOUR, alpha=0.2, linewidth=0)
