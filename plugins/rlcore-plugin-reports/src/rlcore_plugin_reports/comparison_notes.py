"""What a reader of a comparison has to know about the runs behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rlcore_plugin_reports.curves import Curve
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_reports.tables import differences

# below it the interquartile mean has nothing to leave out, and intervals are narrower than they should be
_FEW: Final = 4


def notes(
    settings: Mapping[str, Sequence[RunFiles]],
    curves: Mapping[Path, Curve],
    frame: int,
    asked: bool,
    unit: str = "frame",
) -> list[str]:
    """Return a sentence for each thing to know.

    Args:
        settings: the runs of each.
        curves: by the folders of the runs.
        frame: at which they are compared.
        asked: whether the user named the frame.
        unit: what is counted, a frame or an update.
    """
    damaged = [f"{each}." for runs in settings.values() for run in runs for each in differences(run.folder)]
    return [*_lengths(curves, frame, asked, unit), *_seeds(settings), *_few(settings), *_unfinished(settings), *damaged]


def _lengths(curves: Mapping[Path, Curve], frame: int, asked: bool, unit: str) -> Iterator[str]:
    ends = {folder.name: max(curve) for folder, curve in curves.items()}
    if not asked and max(ends.values()) > frame:
        short = [name for name, end in ends.items() if end == frame]
        others = sorted({end for end in ends.values() if end > frame})
        yield (
            f"Compared at {unit} {frame:,}, the last that every run reached: {_listed(short)} ends there, others at "
            f"{_listed([f'{end:,}' for end in others])}."
        )
    between = [folder.name for folder, curve in curves.items() if frame not in curve]
    if between:
        yield (
            f"{_listed(between)} recorded nothing at {unit} {frame:,}: the value is on the line between the records "
            "before and after it."
        )


def _seeds(settings: Mapping[str, Sequence[RunFiles]]) -> Iterator[str]:
    seeds = {name: [run.section("run").get("seed") for run in runs] for name, runs in settings.items()}
    for name, each in seeds.items():
        for seed, count in Counter(each).items():
            if count > 1:
                yield f"{name}: {count} runs have the seed {seed}, so they are no independent sample."
    if len({tuple(sorted(map(str, each))) for each in seeds.values()}) > 1:
        told = "; ".join(f"{name}: {_listed(sorted(map(str, seeds[name])), 10)}" for name in seeds)
        yield f"The settings have different seeds ({told})."


def _few(settings: Mapping[str, Sequence[RunFiles]]) -> Iterator[str]:
    single = [name for name, runs in settings.items() if len(runs) == 1]
    few = [name for name, runs in settings.items() if 1 < len(runs) < _FEW]
    if single:
        yield f"One seed only, so no standard deviation and no interval: {_listed(single)}."
    if few:
        yield (
            f"Fewer than {_FEW} seeds, so the interquartile mean is the mean and the intervals are too narrow: "
            f"{_listed(few)}."
        )


def _unfinished(settings: Mapping[str, Sequence[RunFiles]]) -> Iterator[str]:
    states = {run.folder.name: run.status.get("state") for runs in settings.values() for run in runs}
    other = [f"{name} ({state})" for name, state in states.items() if state not in (None, "done")]
    if other:
        yield f"Not done: {_listed(other)}."


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
