"""`rlcore evaluate`: the deterministic policy of a trained run, on fixed seeds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints.manifest import best, scan
from rlcore.config.file import read
from rlcore.config.sections import validate
from rlcore.errors import ConfigError
from rlcore.run.build import build
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE
from rlcore.run_folder.trust import check_own

# what the folder says of an evaluation, whatever the checkpoint was trained with
_OF_THE_FOLDER: Final = ("run", "plugins", "checkpoint", "evaluator")


def run(options: argparse.Namespace) -> int:
    """Evaluate and print the episodes."""
    folder = Path(options.run)
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{options.run!r} is not a run folder: it has no {CONFIG_FILE}")
    check_own(folder, options.trust)
    raw = read(folder / CONFIG_FILE)
    raw.values = _as_saved(folder, raw.values, options.best)
    evaluator = raw.values.setdefault("evaluator", {"use": "core:episodes"})
    if options.episodes is not None:
        evaluator["episodes"] = options.episodes
    if options.seed is not None:
        evaluator["seed"] = options.seed
    raw.values.pop("hook", None)
    built = build(validate(raw), write=False)
    frames = built.load_weights(folder / CHECKPOINTS, best=options.best)
    result = built.trainer.evaluate()
    if options.json:
        print(
            json.dumps({"frames": frames, "seeds": result.seeds, "returns": result.returns, "lengths": result.lengths})
        )
        return 0
    print(
        f"{folder.name} at frame {frames:,}: mean return {result.mean_return:,.1f} over {len(result.returns)} episodes"
    )
    for seed, value, length in zip(result.seeds, result.returns, result.lengths, strict=True):
        print(f"  seed {seed:>6}  return {value:>10,.1f}  length {length:>6,}")
    return 0


def _as_saved(folder: Path, values: dict[str, Any], of_best: bool) -> dict[str, Any]:
    """Return the config with what the checkpoint to be evaluated was trained with: the best may be of another model."""
    entries = scan(folder / CHECKPOINTS).entries
    entry = best(entries) if of_best else None
    entry = entry or (entries[-1] if entries else None)
    saved = {} if entry is None else entry.manifest["config"]
    return {**saved, **{name: values[name] for name in _OF_THE_FOLDER if name in values}} if saved else values
