"""`rlcore runs`: what has been trained, from the run folders alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcore.errors import ConfigError
from rlcore.manifest import best, scan
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, read_config, read_status


def run(options: argparse.Namespace) -> int:
    """Print a line per run, newest last."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is not a folder; runs are in [run] folder, by default 'runs'")
    rows = sorted(found(folder), key=lambda row: str(row["time"]))
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    if not rows:
        print(f"no runs in {folder}")
        return 0
    width = max(len(row["run"]) for row in rows)
    for row in rows:
        best = "" if row["best"] is None else f"  best {row['best']:,.1f}"
        place = f"{row['frames']:>12,} of {row['total_frames']:,}"
        print(f"{row['run']:<{width}}  {row['state']:<18} {place}  {row['env']}, {row['loss']}{best}")
    return 0


def found(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the files of each run folder below `folder` say."""
    for path in sorted(folder.rglob(CONFIG_FILE)):
        config, status = read_config(path.parent), read_status(path.parent)
        if "run" not in config:
            continue
        yield {
            "run": str(path.parent.relative_to(folder)),
            "state": status.get("state", "unknown"),
            "frames": status.get("frames", 0),
            "total_frames": config["run"]["total_frames"],
            "seed": config["run"]["seed"],
            "env": config["env"].get("id", config["env"]["use"]),
            "loss": config["loss"]["use"].rpartition(":")[2],
            "best": _best(path.parent / CHECKPOINTS),
            "time": status.get("time", ""),
        }


def _best(checkpoints: Path) -> float | None:
    """Return the best mean return among the evaluations of the checkpoints that are kept."""
    chosen = best(scan(checkpoints).entries)
    return None if chosen is None else chosen.evaluation
