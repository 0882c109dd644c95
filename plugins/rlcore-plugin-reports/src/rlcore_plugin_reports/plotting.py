"""Curves of one or several runs on one figure of matplotlib: a line for each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcore_plugin_reports.colours import colour, style
from rlcore_plugin_reports.curves import Curve, mean_and_spread, panels, read_metrics
from rlcore_plugin_reports.differences import labels
from rlcore_plugin_reports.figures import over_clock, saved_figure
from rlcore_plugin_reports.run_files import RunFiles, experiments


def plot_runs(runs: Sequence[Path], output: Path) -> Path:
    """Draw four panels: return and length, in training and in evaluation; losses where no episode was trained on.

    Args:
        runs: run folders; those of one setting become their mean, with the range between lowest and highest shaded.
        output: the picture.

    Raises:
        ConfigError: no matplotlib, or a folder without metrics.
    """
    groups = experiments([RunFiles(run) for run in runs])
    names = labels(groups)
    clock = " or ".join(sorted({run.clock for group in groups.values() for run in group}))
    curves = {_label(names[key], group): [read_metrics(run.folder) for run in group] for key, group in groups.items()}
    recorded = {key for metrics in curves.values() for run in metrics for key in run}
    with saved_figure(output, 2, 2, figsize=(10, 7)) as (figure, axes):
        for axis, (key, title) in zip(axes.flat, panels(recorded), strict=True):
            _panel(
                axis, {name: [m[key] for m in metrics if m.get(key)] for name, metrics in curves.items()}, title, clock
            )
        if len(curves) == 1:
            figure.suptitle(next(iter(curves)))
        else:
            _legend(figure, list(curves))
    return output


def _label(name: str, group: Sequence[RunFiles]) -> str:
    return name if len(group) == 1 else f"{name}, {len(group)} runs: mean, lowest to highest"


def _legend(figure: Any, names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour(number), linestyle=style(number)) for number in range(len(names))]
    figure.legend(lines, names, loc="outside upper center", ncols=min(3, len(names)), frameon=False)


def _panel(axis: Any, groups: Mapping[str, list[Curve]], title: str, clock: str) -> None:
    axis.set_title(title, fontsize=10)
    lines = {number: mean_and_spread(curves) for number, curves in enumerate(groups.values()) if curves}
    ends = [frames[[0, -1]] for frames, *_ in lines.values() if frames.size]
    over_clock(axis, min((end[0] for end in ends), default=0), max((end[1] for end in ends), default=0), clock)
    if not lines:
        axis.text(0.5, 0.5, "nothing recorded", ha="center", va="center", transform=axis.transAxes, color="grey")
        return
    for number, (frames, mean, lowest, highest) in lines.items():
        marker = "o" if len(frames) < 20 else None
        axis.plot(
            frames, mean, color=colour(number), linestyle=style(number), linewidth=1.5, marker=marker, markersize=3
        )
        if (lowest != highest).any():
            axis.fill_between(frames, lowest, highest, color=colour(number), alpha=0.2, linewidth=0)
