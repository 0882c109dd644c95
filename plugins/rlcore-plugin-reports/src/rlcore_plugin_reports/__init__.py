"""Curves, tables and pages about runs, from their folders alone; and the training of several seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_reports.curves import read_metrics as read_metrics
    from rlcore_plugin_reports.html.page import write_report as write_report
    from rlcore_plugin_reports.statistics import Estimate as Estimate
    from rlcore_plugin_reports.statistics import estimates as estimates
    from rlcore_plugin_reports.statistics import standard_deviation as standard_deviation
    from rlcore_plugin_reports.svg import Line as Line
    from rlcore_plugin_reports.svg import picture as picture

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore_plugin_reports.curves": "read_metrics",
        "rlcore_plugin_reports.html.page": "write_report",
        "rlcore_plugin_reports.statistics": "Estimate estimates standard_deviation",
        "rlcore_plugin_reports.svg": "Line picture",
    },
)


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands, and lends the core what draws and reads curves."""
    return []
