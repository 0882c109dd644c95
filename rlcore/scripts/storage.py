"""Where a script's trainer saves checkpoints, when, what their manifests say besides, and how it finds one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlcore.checkpoints.manifest import MANIFEST, CheckpointEntry, read_manifest
from rlcore.checkpoints.retention import DEFAULT
from rlcore.errors import ArgumentTypeError, ConfigError, NoCheckpointError, StorageError, did_you_mean
from rlcore.plugins.known import lend
from rlcore.run.assembly import Storage
from rlcore.run.single_parts import open_backend
from rlcore.state.exactness import outside
from rlcore.state.fitting import optimizer_of
from rlcore.training.carried import SCRIPT
from rlcore.training.loop import Loop
from rlcore.training.saver import FAULTS
from rlcore.training.schedule import SaveSchedule
from rlcore.types.foreign import WithParamGroups
from rlcore.types.optional import offers
from rlcore.types.progress import Every

log = logging.getLogger(__name__)


def load_checkpoint(
    trainer: Loop, path: Path, backend: str | None, map_location: Any, mmap: bool, options: Mapping[str, Any]
) -> None:
    """Restore the latest checkpoint in a folder, or the one that `path` is; see `Trainer.load_from_file`."""
    for name in options:
        if name not in ("drop", "fresh"):
            raise ArgumentTypeError(
                f"load_from_file: no option {name!r}; they are weights_only, map_location, mmap, drop and fresh"
            )
    if not path.exists():
        raise NoCheckpointError(f"load_from_file: {str(path)!r} does not exist")
    entry, states = open_checkpoint(path, backend)
    owners = entry.manifest["owners"]
    # the parts of rlcore know where their tensors belong, and optimizers put theirs beside their parameters
    stay = [name for name in states if owners.get(name) != SCRIPT and name != "loss_module"]
    stay += [name for name, part in trainer.app_state.items() if offers(optimizer_of(part), WithParamGroups)]
    if map_location is not None or not mmap:
        states = lend("rlcore.scripts", "placed", "load_from_file(map_location=..., mmap=...)")(
            states, map_location, mmap, stay
        )
    trainer.load_state_dict(states, owners=owners, **options)
    provenance = trainer.parts.provenance
    here = outside(entry.manifest, provenance.domain, provenance.versions)
    for reason in here:
        log.warning("exact = false: %s", reason)
    trainer.parts.provenance = provenance.with_reasons([*entry.manifest["inexact"], *here])


def open_checkpoint(path: Path, backend: str | None) -> tuple[CheckpointEntry, dict[str, Any]]:
    """Return the latest checkpoint in a folder, or the one that `path` is, with its states.

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
        entry = CheckpointEntry(path, int(manifest["progress"]["frames"]), manifest)
        return entry, open_backend(manifest["backend"]).store(path.parent).load(entry)
    return open_backend(backend).store(path).load_newest()


def open_storage(folder: str | Path | None, rotation: Any, backend: str | None, interval: int) -> Storage:
    """Return where checkpoints go, and when.

    Args:
        folder: of the checkpoints; None where the rotation says it, or nothing is saved.
        rotation: which are kept, and where.
        backend: name of the checkpoint back end, or None for the default.
        interval: environment frames between checkpoints.

    Raises:
        ConfigError: the folder is a file.
    """
    if rotation is not None:
        folder, retention, keep_best = rotation.directory, rotation.retention, rotation.keep_best is True
    elif folder is not None:
        retention, keep_best = DEFAULT, True
    else:
        return Storage(schedule=SaveSchedule(Every(interval), keep_best=False))
    directory = Path(folder)
    if directory.is_file():
        raise ConfigError(f"save_trainer_file: {directory} is a file; checkpoints are saved into a folder")
    opened = open_backend(backend)
    return Storage(
        opened.store(directory, retention),
        opened.store(directory / FAULTS),
        SaveSchedule(Every(interval), keep_best),
    )


def metadata(
    trainer: Loop, ask_script: Callable[[Any], Mapping[str, Any] | None] | None, rotation: Any
) -> Callable[[], dict[str, Any]] | None:
    """Return what is asked at each save; None where nobody wants to say anything."""
    rated_by = rotation.rated_by[0] if rotation is not None and rotation.rated_by else None
    if ask_script is None and rated_by is None:
        return None

    def ask() -> dict[str, Any]:
        said = {} if ask_script is None else dict(ask_script(trainer) or {})
        if rated_by is None or rated_by in said:
            return said
        counts = {"collected_frames": trainer.progress.frames, "optim_steps": trainer.progress.updates}
        rating = counts.get(rated_by, trainer.metrics.newest(rated_by))
        if rating is None and trainer.progress.frames:
            log.warning(
                "keep_best: there is no metric %r at frame %d%s", rated_by, trainer.progress.frames,
                did_you_mean(rated_by, trainer.metrics.latest),
            )  # fmt: skip
        return said if rating is None else {**said, rated_by: rating}

    return ask
