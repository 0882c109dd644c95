"""Which checkpoint a user means: that of a run folder, of its folder of checkpoints, or one by its own folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.assembly.backends import open_backend
from rlcore.checkpoints.manifest import MANIFEST, CheckpointEntry, best, committed, read_manifest, scan
from rlcore.config.raw import ConfigFile, RawConfig
from rlcore.errors import ConfigError, NoCheckpointError
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE
from rlcore.run_folder.origin import Origin, origin_in


@dataclass(frozen=True)
class Saved:
    """What was saved of an agent.

    Attributes:
        path: where it was read.
        frames: training frames.
        at: how long it was trained, in words.
        states: component name to state.
        config: with which it was trained, resolved.
        env: what is recorded of its env, see `envs/spec_records.py`; empty where nothing is.
        raw: the config as it was saved, which says whether its code may run.
    """

    path: Path
    frames: int
    states: Mapping[str, Any]
    config: Mapping[str, Any]
    env: Mapping[str, Any]
    raw: RawConfig
    at: str = ""


def read_saved(place: Path, of_best: bool, trusted: bool) -> Saved:
    """Read the checkpoint that a path means.

    Args:
        place: a run folder, its folder of checkpoints, or the folder of one checkpoint.
        of_best: the checkpoint with the best evaluation, not the latest.
        trusted: whether code may run that a config names which was not written here.

    Raises:
        ConfigError: there is nothing of that kind, its checkpoint is of another run, or a script saved it, without a
            config.
        StorageError: there is no checkpoint, or none that can be read.
    """
    checkpoints, only = _found(place)
    run = checkpoints.parent
    entry, states = _read(checkpoints, only, of_best)
    config = (origin_in(run, entry) if only is None else Origin.of(run, entry)).config
    if not {"run", "model"} <= config.keys():
        raise ConfigError(
            f"checkpoint {entry.path} does not say of which parts its model was made, as that of a script: load it "
            "with the script that saved it (Trainer.load_from_file)"
        )
    at = f"{entry.unit} {entry.reached:,}"
    raw = saved_config(config, run / CONFIG_FILE, trusted)
    return Saved(entry.path, entry.frames, states, config, entry.manifest.get("env") or {}, raw, at)


def saved_config(config: Mapping[str, Any], path: Path, trusted: bool) -> RawConfig:
    """Return a config that was saved with an agent, as one that was read from a file.

    Args:
        config: resolved.
        path: its relative paths refer to the folder of this file.
        trusted: whether code may run that it names though it was not written here.
    """
    return RawConfig(dict(config), path, files=(ConfigFile.of(path, config, of_a_run=True),), trusted=trusted)


def _found(place: Path) -> tuple[Path, CheckpointEntry | None]:
    """Return the folder of checkpoints, and the only one that is meant, if it is one."""
    if not place.exists():
        raise ConfigError(f"there is no run folder or checkpoint {str(place)!r}")
    if (place / MANIFEST).is_file():
        path = place.resolve()
        manifest = read_manifest(path)
        return path.parent, CheckpointEntry(path, manifest["progress"]["frames"], manifest)
    if (place / CHECKPOINTS).is_dir():
        return place / CHECKPOINTS, None
    if (place / CONFIG_FILE).is_file():
        raise NoCheckpointError(f"run {str(place)!r} has no checkpoint yet: train it until it has saved one")
    if place.is_dir() and committed(place):
        return place.resolve(), None
    raise ConfigError(f"{str(place)!r} is neither a run folder nor a checkpoint: it has no {CONFIG_FILE}")


def _read(folder: Path, only: CheckpointEntry | None, of_best: bool) -> tuple[CheckpointEntry, dict[str, Any]]:
    """Read one checkpoint: the only one, or the best; else the latest that can be read, which says what it skips."""
    if only is not None and of_best:
        raise ConfigError(f"best chooses among the checkpoints of a run, and {str(only.path)!r} is one of them")
    entries = scan(folder).entries
    if not entries and only is None and not committed(folder):
        raise NoCheckpointError(f"run {str(folder.parent)!r} has no checkpoint yet: train it until it has saved one")
    entry = only or (best(entries) if of_best else None)
    if of_best and entry is None:
        raise NoCheckpointError(
            f"no checkpoint of run {str(folder.parent)!r} was evaluated, so none is the best: take the latest, or "
            "train with an [evaluator]"
        )
    name = (entry or entries[-1]).manifest["backend"] if entry or entries else None
    store = open_backend(name).store(folder)
    return (entry, store.load(entry)) if entry is not None else store.load_newest()
