"""`rlcore runs`: what has been trained, from the run folders alone."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlcore.checkpoints import best, scan
from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError, StorageError
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, reached_by
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_reports.tables import differences
from rlcore_plugin_reports.terminal import printable


@dataclass(frozen=True)
class ListedRun:
    """A run, by the files of its folder.

    Attributes:
        run: its folder, relative to the one that is listed.
        state: `running`, `done`, `stopped-resumable`, `failed-resumable`, `failed`, or `unknown` without a status.
        clock: what it counts, `frames` or `updates`.
        now: how many of them are done.
        total: how many there will be.
        seed: of the run; null where its config says none.
        env: the component that is used.
        loss: the component that is used.
        best: the highest mean return among the evaluations of the checkpoints that are kept; null without one.
        differences: what is not as it was at the newest checkpoint, a sentence for each table.
        time: of its status, ISO 8601; empty without one.
    """

    run: str
    state: str
    clock: str
    now: int
    total: int
    seed: int | None
    env: str
    loss: str
    best: float | None
    differences: list[str]
    time: str


@dataclass(frozen=True)
class Runs:
    """What has been trained.

    Attributes:
        folder: that is listed.
        runs: the latest last.
    """

    folder: str
    runs: list[ListedRun]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore runs`."""
    parser.description = "List what has been trained."
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="runs", help="where runs are; default: runs")
    add_json(parser, Runs)


def run(options: argparse.Namespace) -> Answer:
    """Answer with the runs, the latest last."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is not a folder; runs are in [run] folder, by default 'runs'")
    runs = sorted(found(folder), key=lambda run: run.time)
    heads = [_head(run) for run in runs]
    width = max((len(name) for name, _ in heads), default=0)
    lines = [f"no runs in {folder}"] if not runs else []
    for run, (name, text) in zip(runs, heads, strict=True):
        lines.append("\n    ".join([f"{name:<{width}}  {text}", *map(printable, run.differences)]))
    return Answer(Runs(options.folder, runs), "\n".join(lines) + "\n")


def _head(run: ListedRun) -> tuple[str, str]:
    """Return name and description of a run; its files may say anything."""
    best = "" if run.best is None else f"  best {run.best:,.1f}"
    place = f"{run.now:>12,} of {run.total:,}" + ("" if run.clock == "frames" else f" {run.clock}")
    return printable(run.run), printable(f"{run.state:<18} {place}  {run.env}, {run.loss}{best}")


def found(folder: Path) -> Iterator[ListedRun]:
    """Yield what the files of each run folder below `folder` say, as far as they can be read."""
    for path in sorted(folder.rglob(CONFIG_FILE)):
        run = RunFiles(path.parent)
        if not run.section("run"):
            continue
        yield ListedRun(
            run=str(run.folder.relative_to(folder)),
            state=run.status.get("state", "unknown"),
            clock=run.clock,
            now=reached_by(run.status),
            total=run.total,
            seed=run.section("run").get("seed"),
            env=run.used("env"),
            loss=run.used("loss"),
            best=_best(run.folder / CHECKPOINTS),
            differences=differences(run.folder),
            time=run.status.get("time", ""),
        )


def _best(checkpoints: Path) -> float | None:
    """Return the best mean return among the evaluations of the checkpoints that are kept."""
    try:
        entry = best(scan(checkpoints).entries)
    except StorageError:  # a folder that cannot be listed hides no other run
        return None
    return None if entry is None else entry.evaluation
