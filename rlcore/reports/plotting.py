"""Curves of one or several runs on one figure of matplotlib: a line for each experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcore.errors import ConfigError
from rlcore.reports.curves import PANELS, Curve, mean_and_spread, read_metrics
from rlcore.reports.run_files import RunFiles, experiments
from rlcore.reports.svg import COLOURS


def plot_runs(runs: Sequence[Path], output: Path) -> Path:
    """Draw the four panels: return and length, in training and in evaluation.

    Args:
        runs: run folders; those of one experiment become their mean, with the range between lowest and highest shaded.
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
    from matplotlib.lines import Line2D

    groups = {
        _label(name, group): [read_metrics(run.folder) for run in group]
        for name, group in experiments([RunFiles(run) for run in runs]).items()
    }
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for axis, (key, title) in zip(axes.flat, PANELS, strict=True):
        _panel(axis, {name: [m[key] for m in metrics if m.get(key)] for name, metrics in groups.items()}, title)
    if len(groups) == 1:
        figure.suptitle(next(iter(groups)))
    else:
        lines = [Line2D([], [], color=_colour(number)) for number in range(len(groups))]
        figure.legend(lines, list(groups), loc="outside upper center", ncols=min(3, len(groups)), frameon=False)
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:  # no such folder, or no such format
        raise ConfigError(f"{str(output)!r} cannot be written: {error}") from error
    finally:
        pyplot.close(figure)
    return output


def _label(name: str, group: Sequence[RunFiles]) -> str:
    return name if len(group) == 1 else f"{name}, {len(group)} runs: mean, lowest to highest"


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _panel(axis: Any, groups: Mapping[str, list[Curve]], title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("frames")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.grid(alpha=0.3)
    if not any(groups.values()):
        axis.text(0.5, 0.5, "nothing recorded", ha="center", va="center", transform=axis.transAxes, color="grey")
        return
    for number, curves in enumerate(groups.values()):
        if not curves:
            continue
        frames, mean, lowest, highest = mean_and_spread(curves)
        colour, marker = _colour(number), "o" if len(frames) < 20 else None
        axis.plot(frames, mean, color=colour, linewidth=1.5, marker=marker, markersize=3)
        if len(curves) > 1:
            axis.fill_between(frames, lowest, highest, color=colour, alpha=0.2, linewidth=0)
