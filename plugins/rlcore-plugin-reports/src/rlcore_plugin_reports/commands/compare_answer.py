"""What `rlcore compare` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcore_plugin_reports.comparison import Comparison
from rlcore_plugin_reports.statistics import Estimate


@dataclass(frozen=True)
class ComparedSetting:
    """The runs of one setting, and their figures.

    Attributes:
        name: what its config has that the others have not, or the name of its runs.
        runs: their folders.
        scores: the metric of each run at the frame of the comparison.
        deviation: standard deviation of the scores; null of a single run.
        figures: by name: mean, median, iqm, optimality_gap where there is a threshold, and area.
        reached: by run: the frame at which the metric was first at the threshold; null where it never was.
    """

    name: str
    runs: list[str]
    scores: list[float]
    deviation: float | None
    figures: dict[str, Estimate]
    reached: list[int | None]


@dataclass(frozen=True)
class ComparedPair:
    """Two settings.

    Attributes:
        first: name of one.
        second: name of the other.
        probability: that a run of the first has the higher score.
    """

    first: str
    second: str
    probability: Estimate


@dataclass(frozen=True)
class Compared:
    """Settings beside each other.

    Attributes:
        metric: what is compared; higher is better.
        clock: what the runs count, `frames` or `updates`.
        now: at how many of them the settings are compared.
        threshold: what the metric is to reach; null without.
        settings: in the order of their first runs.
        pairs: each two of them.
        notes: what a reader has to know about it, a sentence each.
        files: that `--output` wrote.
    """

    metric: str
    clock: str
    now: int
    threshold: float | None
    settings: list[ComparedSetting]
    pairs: list[ComparedPair]
    notes: list[str]
    files: list[str]


def compared(comparison: Comparison, files: Sequence[Path]) -> Compared:
    """Return the answer of a comparison."""
    settings = [
        ComparedSetting(
            setting.name,
            [str(run.folder) for run in setting.runs],
            setting.scores.tolist(),
            setting.deviation,
            setting.figures,
            [*setting.reached],
        )
        for setting in comparison.settings
    ]
    pairs = [ComparedPair(first, second, chance) for (first, second), chance in comparison.improvements.items()]
    return Compared(
        comparison.metric,
        comparison.clock,
        comparison.frame,
        comparison.threshold,
        settings,
        pairs,
        [*comparison.notes],
        list(map(str, files)),
    )
