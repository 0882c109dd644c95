"""Where a script's trainer saves checkpoints, when, what their manifests say besides, and how it finds one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcore.checkpoints.manifest import MANIFEST, CheckpointEntry, read_manifest
from rlcore.errors import ArgumentTypeError, ConfigError, NoCheckpointError, StorageError, did_you_mean
from rlcore.run.assembly import Storage
from rlcore.run.single_parts import open_backend
from rlcore.scripts.rotation import CheckpointRotation
from rlcore.state.exactness import outside
from rlcore.state.fitting import optimizer_of
from rlcore.state.kinds import KINDS, kind_of
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
    trainer.load_state_dict(placed(states, map_location, mmap, stay), owners=owners, **options)
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


def placed(
    states: dict[str, Any], map_location: Any, mmap: bool, where_they_are: Collection[str] = ()
) -> dict[str, Any]:
    """Return states with their tensors where a caller of `torch.load` wants them.

    Args:
        states: by component name; their tensors are on the CPU and mapped from files.
        map_location: as in `torch.load`: a device, a mapping of devices, a function of storage and place, or None.
        mmap: whether tensors may stay mapped from files.
        where_they_are: names of those whose tensors are not moved.

    Raises:
        ArgumentTypeError: another kind of `map_location`.
    """
    if map_location is None and mmap:
        return states
    move = _mover(map_location)
    movers = {name: _mover(None) if name in where_they_are else move for name in states}
    return {name: _moved(state, movers[name], mmap) for name, state in states.items()}


def _mover(map_location: Any) -> Callable[[Tensor], Tensor]:
    if map_location is None:
        return lambda tensor: tensor
    if isinstance(map_location, Mapping):
        map_location = map_location.get("cpu", "cpu")
    if isinstance(map_location, str | torch.device):
        return lambda tensor: tensor.to(map_location)
    if not callable(map_location):
        raise ArgumentTypeError(
            f"map_location: a {type(map_location).__name__}; expected a device, a mapping of devices or a function"
        )

    def move(tensor: Tensor) -> Tensor:
        storage = map_location(tensor.untyped_storage(), "cpu")
        return tensor if storage is None else tensor.to(storage.device)

    return move


def _moved(value: Any, move: Callable[[Tensor], Tensor], mmap: bool) -> Any:
    if isinstance(value, Tensor):
        tensor = move(value)
        return tensor.clone() if tensor is value and not mmap else tensor  # a copy is not mapped
    mark = kind_of(value)
    if mark is not None:
        return KINDS[mark].build(_moved_parts(value, KINDS[mark].plain(value), move, mmap))
    if isinstance(value, Mapping):
        return {key: _moved(item, move, mmap) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(item, move, mmap) for item in value)
    return value


def _moved_parts(value: Any, parts: Any, move: Callable[[Tensor], Tensor], mmap: bool) -> Any:
    """Return the parts of an object of a kind; a TensorDict would take its entries back to its own device."""
    moved = _moved(parts, move, mmap)
    if isinstance(parts, dict) and parts.get("device") is not None:
        moved["device"] = move(torch.empty(0, device=value.device)).device
    return moved


def open_storage(
    folder: str | Path | None, rotation: CheckpointRotation | None, backend: str | None, interval: int
) -> Storage:
    """Return where checkpoints go, and when.

    Args:
        folder: of the checkpoints; None where the rotation says it, or nothing is saved.
        rotation: which are kept, and where.
        backend: name of the checkpoint back end, or None for the default.
        interval: environment frames between checkpoints.

    Raises:
        ConfigError: the folder is a file.
    """
    if rotation is None and folder is not None:
        rotation = CheckpointRotation(folder)
    if rotation is None:
        return Storage(schedule=SaveSchedule(Every(interval), keep_best=False))
    directory = Path(rotation.directory)
    if directory.is_file():
        raise ConfigError(f"save_trainer_file: {directory} is a file; checkpoints are saved into a folder")
    opened = open_backend(backend)
    return Storage(
        opened.store(directory, rotation.retention),
        opened.store(directory / FAULTS),
        SaveSchedule(Every(interval), keep_best=rotation.keep_best is True),
    )


def metadata(
    trainer: Loop, ask_script: Callable[[Any], Mapping[str, Any] | None] | None, rotation: CheckpointRotation | None
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
