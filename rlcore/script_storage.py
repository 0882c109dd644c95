"""Where a script's trainer saves checkpoints, when, and how it finds one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlcore.checkpoint import Store
from rlcore.config import CKPT_BACKEND
from rlcore.context import Context
from rlcore.errors import ConfigError, StorageError
from rlcore.manifest import MANIFEST, Entry, read_manifest
from rlcore.plugins import PluginHost
from rlcore.progress import Every
from rlcore.saver import EVIDENCE, CheckpointSchedule
from rlcore.script_settings import CheckpointRotation, Settings
from rlcore.sections import find_component
from rlcore.types import Checkpointer


def open_checkpoint(path: Path, backend: str | None) -> tuple[Entry, dict[str, Any]]:
    """Return the newest checkpoint in a folder, or the one that `path` is, with its states.

    Raises:
        StorageError: there is none that can be loaded.
    """
    if path.is_file():
        raise StorageError(
            f"{path} is a file; checkpoints are folders. Weights of another library are loaded with torch.load and "
            "load_state_dict"
        )
    if (path / MANIFEST).is_file():
        manifest = read_manifest(path)
        store = _store(path.parent, manifest["backend"])
        entry = Entry(path, int(manifest["progress"]["frames"]), manifest)
        return entry, store.load(entry)
    return _store(path, _backend_name(backend)).load_newest()


def schedule_of(settings: Settings) -> CheckpointSchedule:
    """Return when to save; it has state, so that a trainer which saves nothing can load what others saved."""
    rotation = settings.checkpoint_rotation
    if rotation is None and settings.save_trainer_file is not None:
        rotation = CheckpointRotation(settings.save_trainer_file)
    return CheckpointSchedule(Every(settings.save_trainer_interval), rotation is not None and bool(rotation.keep_best))


def open_stores(settings: Settings) -> tuple[Store | None, Store | None]:
    """Return where checkpoints go, and where batches go that were not finite; None for a run that saves nothing.

    Raises:
        ConfigError: the folder is a file.
    """
    rotation = settings.checkpoint_rotation
    if rotation is None and settings.save_trainer_file is not None:
        rotation = CheckpointRotation(settings.save_trainer_file)
    if rotation is None:
        return None, None
    folder = Path(rotation.directory)
    if folder.is_file():
        raise ConfigError(f"save_trainer_file: {folder} is a file; checkpoints are saved into a folder")
    name = _backend_name(settings.checkpoint)
    return _store(folder, name, rotation), _store(folder / EVIDENCE, name)


def _store(folder: Path, name: str, rotation: CheckpointRotation | None = None) -> Store:
    provided, config = find_component(PluginHost(), "checkpointer", name, {})
    backend: Checkpointer = provided.build(config, Context.alone("trainer").for_component("checkpointer", name))
    if rotation is None:
        return Store(folder, backend, name)
    return Store(folder, backend, name, rotation.keep_last, rotation.keep_best)


def _backend_name(given: str | None) -> str:
    return given or os.environ.get(CKPT_BACKEND) or "torch"
