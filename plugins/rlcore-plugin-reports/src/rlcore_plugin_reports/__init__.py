"""Curves, tables and pages about runs, from their folders alone; and the training of several seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_reports.comparison import METRIC as METRIC
    from rlcore_plugin_reports.comparison import Comparison as Comparison
    from rlcore_plugin_reports.comparison import compare as compare
    from rlcore_plugin_reports.comparison_curves import interval_curve as interval_curve
    from rlcore_plugin_reports.curves import panels as panels
    from rlcore_plugin_reports.curves import read_evaluations as read_evaluations
    from rlcore_plugin_reports.curves import read_metrics as read_metrics
    from rlcore_plugin_reports.differences import differing as differing
    from rlcore_plugin_reports.differences import shown as shown
    from rlcore_plugin_reports.html.health import findings as findings
    from rlcore_plugin_reports.html.lines import LARGE as LARGE
    from rlcore_plugin_reports.html.lines import SMALL as SMALL
    from rlcore_plugin_reports.html.lines import STATISTICS as STATISTICS
    from rlcore_plugin_reports.html.lines import points as points
    from rlcore_plugin_reports.html.media import MEDIA_TYPES as MEDIA_TYPES
    from rlcore_plugin_reports.html.media import media_files as media_files
    from rlcore_plugin_reports.html.overview import checkpoint_rows as checkpoint_rows
    from rlcore_plugin_reports.html.overview import state as state
    from rlcore_plugin_reports.html.page import WEB as WEB
    from rlcore_plugin_reports.html.page import write_report as write_report
    from rlcore_plugin_reports.run_files import RunFiles as RunFiles
    from rlcore_plugin_reports.statistics import Estimate as Estimate
    from rlcore_plugin_reports.statistics import estimates as estimates
    from rlcore_plugin_reports.statistics import standard_deviation as standard_deviation
    from rlcore_plugin_reports.svg import Line as Line
    from rlcore_plugin_reports.svg import picture as picture

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore_plugin_reports.comparison": "METRIC Comparison compare",
        "rlcore_plugin_reports.comparison_curves": "interval_curve",
        "rlcore_plugin_reports.curves": "panels read_evaluations read_metrics",
        "rlcore_plugin_reports.differences": "differing shown",
        "rlcore_plugin_reports.html.health": "findings",
        "rlcore_plugin_reports.html.lines": "LARGE SMALL STATISTICS points",
        "rlcore_plugin_reports.html.media": "MEDIA_TYPES media_files",
        "rlcore_plugin_reports.html.overview": "checkpoint_rows state",
        "rlcore_plugin_reports.html.page": "WEB write_report",
        "rlcore_plugin_reports.run_files": "RunFiles",
        "rlcore_plugin_reports.statistics": "Estimate estimates standard_deviation",
        "rlcore_plugin_reports.svg": "Line picture",
    },
)


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands, and lends the core what draws and reads curves."""
    return []
