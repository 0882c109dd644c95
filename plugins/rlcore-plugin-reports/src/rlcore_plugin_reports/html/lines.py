"""The lines of the charts: of each metric one for each setting, thinned, as plain data for the script of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rlcore_plugin_reports.curves import EVALUATION, mean_and_spread, panels
from rlcore_plugin_reports.html.settings import Setting
from rlcore_plugin_reports.html.thinning import finite, thinned
from rlcore_plugin_reports.svg import Line

# points of a line: of the large chart, and of a small one
LARGE: Final = 4_000
SMALL: Final = 1_000
FIRST: Final = EVALUATION[0][0]
STATISTICS: Final = ("/std", "/min", "/max", "/count")
_DIGITS: Final = 6


def chart_data(all_settings: Sequence[Setting]) -> dict[str, Any]:
    """Return what the charts show: settings, and lines by metric, in the order in which they are shown."""
    recorded, titles = _recorded(all_settings), main_titles(all_settings)
    # of these the page has charts at once; of all others on request
    main = [key for key in titles if key in recorded]
    others = sorted(recorded - set(main), key=lambda key: (key.endswith(STATISTICS), key))
    if not main:
        main, others = others[:1], others[1:]
    return {
        "settings": [{"label": setting.name, "runs": len(setting.runs)} for setting in all_settings],
        "main": main,
        "metrics": {
            key: {"title": titles.get(key, key), "lines": _lines(all_settings, key, LARGE if key == main[0] else SMALL)}
            for key in [*main, *others]
        },
    }


def main_titles(all_settings: Sequence[Setting]) -> dict[str, str]:
    """Return the titles of the main charts by key, the returns of evaluations first."""
    return dict(sorted(panels(_recorded(all_settings)), key=lambda panel: panel[0] != FIRST))


def line_of(setting: Setting, key: str) -> tuple[Line, int] | None:
    """Return the line of a metric, the mean over the runs that have it, and how many these are."""
    curves = [run.metrics[key] for run in setting.runs if run.metrics.get(key)]
    if not curves:
        return None
    line = finite(Line(setting.name, *mean_and_spread(curves)))
    return (line, len(curves)) if line.x.size else None


def _recorded(all_settings: Sequence[Setting]) -> set[str]:
    return {key for setting in all_settings for run in setting.runs for key in run.metrics}


def _lines(all_settings: Sequence[Setting], key: str, most: int) -> list[dict[str, Any]]:
    lines = []
    for number, setting in enumerate(all_settings):
        found = line_of(setting, key)
        if found is None:
            continue
        line, runs = found
        lines.append({"setting": number, "runs": runs, **points(line, most)})
    return lines


def points(whole: Line, most: int) -> dict[str, Any]:
    """Return what a chart of the page draws of a line: its points as lists, and of how many they are if it is thinned.

    Args:
        whole: finite.
        most: of the points that are drawn, at least 4.
    """
    line = thinned(whole, most)
    entry: dict[str, Any] = {"x": line.x.astype(int).tolist(), "mean": _rounded(line.y)}
    if not np.array_equal(line.low, line.high):
        entry |= {"low": _rounded(line.low), "high": _rounded(line.high)}
    if line.x.size < whole.x.size:
        entry["of"] = int(whole.x.size)
    return entry


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
