"""Several runs beside each other: their curves with intervals over seeds, and the keys in which they differ."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rlcore_plugin_reports import METRIC, Comparison, Estimate, Line, compare, differing, interval_curve, points, shown

from rlcore.errors import ConfigError
from rlcore_plugin_console.catalogue import Catalogue
from rlcore_plugin_console.details import Details


class Comparisons:
    """Comparisons of runs of a catalogue.

    Args:
        catalogue: which has the runs.
        details: which reads their curves.
    """

    def __init__(self, catalogue: Catalogue, details: Details) -> None:
        self._catalogue = catalogue
        self._details = details

    def of(self, names: Sequence[str], metric: str, known: str) -> dict[str, Any] | None:
        """Return lines for a chart, figures of each setting, and the keys that differ; None without news.

        Args:
            names: of the runs; those that differ in name, folder and seed alone are one setting.
            metric: higher is better.
            known: version of what the reader got last.

        Raises:
            UnknownRunError: there is no such run.
            ConfigError: the runs cannot be compared; says why.
        """
        if not names:
            raise ConfigError("no run is chosen")
        folders = {self._catalogue.folder_of(name): name for name in dict.fromkeys(names)}
        of_evaluations = metric.startswith(METRIC.partition("/")[0])
        rows = [self._details.rows_of(name, of_evaluations) for name in folders.values()]
        version = hashlib.blake2b(repr((names, metric, rows)).encode("utf-8", "replace"), digest_size=8).hexdigest()
        if known == version:
            return None
        read = self._details.of_runs if of_evaluations else self._details.all_curves
        comparison = compare(list(folders), metric, read=read)
        return {
            "version": version,
            "metric": metric,
            "unit": comparison.unit,
            "frame": comparison.frame,
            "notes": list(comparison.notes),
            "settings": [_setting(setting, folders) for setting in comparison.settings],
            "improvements": [
                {"one": one, "other": other, **_figure(figure)}
                for (one, other), figure in comparison.improvements.items()
            ],
            "differing": {
                key: [shown(value) for value in values]
                for key, values in differing([each.runs[0].compared for each in comparison.settings]).items()
            },
            "lines": _lines(comparison),
        }


def _setting(setting: Any, folders: dict[Path, str]) -> dict[str, Any]:
    return {
        "label": setting.name,
        "runs": len(setting.runs),
        "names": [folders[run.folder] for run in setting.runs],
        "scores": setting.scores.tolist(),
        "deviation": setting.deviation,
        "figures": {name: _figure(figure) for name, figure in setting.figures.items()},
    }


def _figure(figure: Estimate) -> dict[str, float | None]:
    return {"value": figure.value, "low": figure.low, "high": figure.high}


def _lines(comparison: Comparison) -> list[dict[str, Any]]:
    lines = []
    for number, setting in enumerate(comparison.settings):
        frames, curve = interval_curve(setting, comparison.begin, comparison.frame)
        mean = np.array([each.value for each in curve])
        low, high = (
            np.array([each.value if end is None else end for each, end in zip(curve, ends, strict=True)])
            for ends in ([each.low for each in curve], [each.high for each in curve])
        )
        line = Line(setting.name, frames.astype(float), mean, low, high)
        lines.append({"setting": number, "runs": len(setting.runs), **points(line, max(4, len(frames)))})
    return lines
