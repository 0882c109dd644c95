"""`rlcore runs`: what has been trained, from the run folders alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcore.checkpoints import best, scan
from rlcore.errors import ConfigError, StorageError
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, reached_by
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_reports.tables import differences
from rlcore_plugin_reports.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore runs`."""
    parser.description = "List what has been trained."
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="runs", help="where runs are; default: runs")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print a line per run, latest last."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is not a folder; runs are in [run] folder, by default 'runs'")
    rows = sorted(found(folder), key=lambda row: str(row["time"]))
    if options.json:
        print(json.dumps(rows, indent=1, default=str))
        return 0
    if not rows:
        print(f"no runs in {folder}")
        return 0
    lines = [_line(row) for row in rows]
    width = max(len(name) for name, _ in lines)
    for row, (name, text) in zip(rows, lines, strict=True):
        print("\n    ".join([f"{name:<{width}}  {text}", *map(printable, row["differences"])]))
    return 0


def _line(row: dict[str, Any]) -> tuple[str, str]:
    """Return name and description of a run; its files may say anything."""
    best = "" if row["best"] is None else f"  best {row['best']:,.1f}"
    clock = "frames" if "frames" in row else "updates"
    place = f"{row[clock]:>12,} of {row[f'total_{clock}']:,}" + ("" if clock == "frames" else f" {clock}")
    return printable(row["run"]), printable(f"{row['state']:<18} {place}  {row['env']}, {row['loss']}{best}")


def found(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the files of each run folder below `folder` say, as far as they can be read."""
    for path in sorted(folder.rglob(CONFIG_FILE)):
        run = RunFiles(path.parent)
        if not run.section("run"):
            continue
        yield {
            "run": str(run.folder.relative_to(folder)),
            "state": run.status.get("state", "unknown"),
            run.clock: reached_by(run.status),
            f"total_{run.clock}": run.total,
            "seed": run.section("run").get("seed"),
            "env": run.used("env"),
            "loss": run.used("loss"),
            "best": _best(run.folder / CHECKPOINTS),
            "differences": differences(run.folder),
            "time": run.status.get("time", ""),
        }


def _best(checkpoints: Path) -> float | None:
    """Return the best mean return among the evaluations of the checkpoints that are kept."""
    try:
        entry = best(scan(checkpoints).entries)
    except StorageError:  # a folder that cannot be listed hides no other run
        return None
    return None if entry is None else entry.evaluation
