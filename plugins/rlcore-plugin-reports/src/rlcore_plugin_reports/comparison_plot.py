"""The picture of a comparison: a curve with its interval for each setting, and where each setting ends up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore_plugin_reports.colours import colour, style
from rlcore_plugin_reports.comparison import Comparison, Setting
from rlcore_plugin_reports.comparison_curves import interval_curve
from rlcore_plugin_reports.figures import over_clock, saved_figure
from rlcore_plugin_reports.statistics import Estimate

if TYPE_CHECKING:
    from rlcore.types import Array


def plot_comparison(comparison: Comparison, output: Path) -> Path:
    """Draw the interquartile mean over the frames, and at the frame of the comparison, with 95% intervals.

    Args:
        comparison: what to draw.
        output: the picture; its ending says the format.

    Raises:
        ConfigError: no matplotlib, or the picture cannot be written.
    """
    height = max(3.8, 1.6 + 0.5 * len(comparison.settings))
    with saved_figure(output, 1, 2, figsize=(11, height), width_ratios=(3, 2)) as (figure, axes):
        _curves(axes[0], comparison)
        _ends(axes[1], comparison)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=min(3, len(names)), frameon=False)
    return output


def _curves(axis: Any, comparison: Comparison) -> None:
    begin = comparison.begin
    for number, setting in enumerate(comparison.settings):
        frames, line = interval_curve(setting, begin, comparison.frame)
        _line(axis, frames, line, colour(number), style(number), setting)
    if comparison.threshold is not None:
        axis.axhline(comparison.threshold, color="grey", linewidth=1, linestyle="--")
    over_clock(axis, begin, comparison.frame, comparison.clock)
    axis.set_title(f"{comparison.metric}: interquartile mean, 95% interval", fontsize=10)


def _line(axis: Any, frames: Array, line: Sequence[Estimate], shade: str, dashes: str, setting: Setting) -> None:
    seeds = f"{len(setting.runs)} seed{'s' * (len(setting.runs) > 1)}"
    axis.plot(
        frames,
        [each.value for each in line],
        color=shade,
        linestyle=dashes,
        linewidth=1.6,
        marker="o" if len(frames) < 20 else None,
        markersize=3,
        label=f"{setting.name} ({seeds})",
    )
    if len(setting.runs) > 1:
        low, high = [each.low for each in line], [each.high for each in line]
        axis.fill_between(frames, low, high, color=shade, alpha=0.2, linewidth=0)


def _ends(axis: Any, comparison: Comparison) -> None:
    """Draw the score of each run, and over them the interquartile mean with its interval."""
    for number, setting in enumerate(comparison.settings):
        shade, each = colour(number), setting.figures["iqm"]
        axis.plot(setting.scores, np.full(setting.scores.size, number), "o", color=shade, alpha=0.35, markersize=5)
        if each.low is not None and each.high is not None:
            axis.plot([each.low, each.high], [number, number], color=shade, linewidth=7, alpha=0.45)
        axis.plot([each.value], [number], "|", color=shade, markersize=18, markeredgewidth=2.5)
    if comparison.threshold is not None:
        axis.axvline(comparison.threshold, color="grey", linewidth=1, linestyle="--")
    axis.set_yticks(range(len(comparison.settings)), [setting.name for setting in comparison.settings])
    axis.set_ylim(len(comparison.settings) - 0.5, -0.5)
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(f"at {comparison.unit} {comparison.frame:,}, with each run", fontsize=10)
