"""What the page says in words and tables: the headline, and rows of runs, evaluations and checkpoints."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from rlcore.checkpoints import best, scan
from rlcore.errors import StorageError
from rlcore.run_folder import CHECKPOINTS, reached_by
from rlcore_plugin_reports.html.lines import FIRST
from rlcore_plugin_reports.html.settings import Setting
from rlcore_plugin_reports.run_files import RunFiles

_STATES: Final = {
    "done": "finished",
    "running": "running",
    "stopped-resumable": "stopped",
    "failed-resumable": "failed",
    "failed": "failed",
}
_RESUMES: Final = {"True": "exactly", "False": "not exactly"}


@dataclass(frozen=True)
class Evaluated:
    """An evaluation of a setting.

    Attributes:
        frames: when.
        mean: over runs, of the mean return of each.
        low: the lowest of the runs; of one run, of its episodes.
        high: likewise.
        runs: how many.
        deviation: standard deviation over the runs; None of one run.
        length: mean length of the episodes; None where it is not known.
    """

    frames: int
    mean: float
    low: float
    high: float
    runs: int
    deviation: float | None
    length: float | None


def evaluations(setting: Setting) -> list[Evaluated]:
    """Return the evaluations of a setting by frame; those that the most runs of it have made."""
    frames = sorted({frames for run in setting.runs for frames in run.metrics.get(FIRST, {})})
    return [found for found in (_evaluated(setting.runs, each) for each in frames) if found is not None]


def _evaluated(runs: Sequence[RunFiles], frames: int) -> Evaluated | None:
    returns = np.array([run.metrics[FIRST][frames] for run in runs if frames in run.metrics.get(FIRST, {})])
    if not np.isfinite(returns).all():
        return None
    lengths = [run.metrics.get("evaluation/length", {}).get(frames) for run in runs]
    known = [length for length in lengths if length is not None and math.isfinite(length)]
    low, high = float(returns.min()), float(returns.max())
    if returns.size == 1:
        episodes = [run.metrics.get(f"{FIRST}/{end}", {}).get(frames) for run in runs for end in ("min", "max")]
        low, high = (low, high) if None in episodes or len(episodes) != 2 else (episodes[0] or 0.0, episodes[1] or 0.0)
    return Evaluated(
        frames,
        float(returns.mean()),
        low,
        high,
        returns.size,
        float(returns.std()) if returns.size > 1 else None,
        sum(known) / len(known) if known else None,
    )


def best_of(found: Sequence[Evaluated]) -> Evaluated | None:
    """Return the one with the highest mean, among those after the start that the most runs took part in."""
    trained = [each for each in found if each.frames]
    most = max((each.runs for each in trained), default=0)
    return max((each for each in trained if each.runs == most), key=lambda each: each.mean, default=None)


def headline(all_settings: Sequence[Setting], name: str) -> dict[str, Any]:
    """Return what the page begins with."""
    runs = [run for setting in all_settings for run in setting.runs]
    states = Counter(state(run) for run in runs)
    seconds = [run.seconds_trained for run in runs]
    by_setting = [(setting, evaluations(setting)) for setting in all_settings]
    bests = [(setting, found) for setting, each in by_setting if (found := best_of(each)) is not None]
    lasts = [(setting, each[-1]) for setting, each in by_setting if each]
    return {
        "name": name,
        "runs": len(runs),
        "settings": len(all_settings),
        "states": [(text, count) for text, count in states.most_common()],
        "envs": _distinct(run.used("env") for run in runs),
        "algorithms": _distinct(run.used("loss") for run in runs),
        "frames": sum(reached(run) for run in runs),
        "total_frames": sum(run.total for run in runs),
        "seconds": sum(value or 0 for value in seconds) if any(seconds) else None,
        "best": max(bests, key=lambda pair: pair[1].mean, default=None),
        "last": max(lasts, key=lambda pair: pair[1].mean, default=None),
    }


def state(run: RunFiles) -> str:
    """Return where a run stands in one word."""
    return _STATES.get(str(run.status.get("state")), "unknown")


def reached(run: RunFiles) -> int:
    """Return how far a run is on its clock; of a run that goes on the status says where its checkpoint was."""
    known = [entry.reached for entry in checkpoints(run)]
    if run.clock in run.status:
        known = [reached_by(run.status)]
    if run.status.get("state") == "running":
        known += [max(curve) for curve in run.metrics.values()]
    return max(known, default=0)


def checkpoints(run: RunFiles) -> list[Any]:
    """Return the checkpoints of a run that can be read, oldest first."""
    try:
        return scan(run.folder / CHECKPOINTS).entries
    except StorageError:
        return []


def run_rows(all_settings: Sequence[Setting], beside: Path | None) -> list[dict[str, Any]]:
    """Return a row for each run.

    Args:
        all_settings: of the page.
        beside: the folder that the page lies in, from which the run folders are linked; None to link nothing.
    """
    return [_run_row(number, run, beside) for number, setting in enumerate(all_settings) for run in setting.runs]


def _run_row(number: int, run: RunFiles, beside: Path | None) -> dict[str, Any]:
    curve = {frames: value for frames, value in run.metrics.get(FIRST, {}).items() if math.isfinite(value)}
    return {
        "setting": number,
        "name": run.folder.resolve().name,
        "link": None if beside is None else _link(run.folder, beside),
        "state": state(run),
        "seed": run.section("run").get("seed", ""),
        "frames": reached(run),
        "total_frames": run.total,
        "speed": run.speed,
        "best": max((value for frames, value in curve.items() if frames), default=None),
        "last": curve[max(curve)] if curve else None,
        "resumes": _RESUMES.get(repr(run.status.get("exact")), ""),
    }


def _link(folder: Path, beside: Path) -> str | None:
    try:
        place = os.path.relpath(folder.resolve(), beside.resolve())
    except ValueError:  # on another drive
        return None
    return quote(f"./{Path(place).as_posix()}/") if place != "." else "./"


def checkpoint_rows(runs: Sequence[RunFiles]) -> list[dict[str, Any]]:
    """Return a row for each checkpoint, the latest of a run first."""
    rows = []
    for run in runs:
        entries = checkpoints(run)
        chosen = best(entries)
        for entry in reversed(entries):
            rows.append(
                {
                    "run": run.folder.resolve().name,
                    "name": entry.path.name,
                    "frames": entry.reached,
                    "evaluation": entry.evaluation,
                    "is_best": chosen is not None and entry.path == chosen.path,
                    "bytes": entry.size,
                    "time": str(entry.manifest["time"])[:19].replace("T", " "),
                }
            )
    return rows


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))
