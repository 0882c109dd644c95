"""Which checkpoints are kept, and taking away the others and what could not be committed."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from rlcore.checkpoints.manifest import CheckpointEntry, best, scan
from rlcore.errors import ArgumentTypeError, ConfigError

log = logging.getLogger(__name__)

# whether the checkpoint with the best evaluation is kept; or the name of a number in the metadata, and "min" or "max"
KeepBest: TypeAlias = bool | tuple[str, str]

# what does not count as a checkpoint: one that is being written, and one that is being removed
PARTIAL: Final = ".partial-"
TRASH: Final = ".trash-"


def surplus(entries: Sequence[CheckpointEntry], keep_last: int, keep_best: KeepBest = True) -> list[CheckpointEntry]:
    """Return the checkpoints that need not be kept.

    Args:
        entries: oldest first.
        keep_last: how many of the latest are kept, at least one.
        keep_best: whether the one with the best evaluation is kept too, or by which number it is the best.
    """
    keep = {entry.path for entry in entries[-max(1, keep_last) :]}
    best_entry = best(entries, keep_best if isinstance(keep_best, tuple) else None) if keep_best else None
    if best_entry is not None:
        keep.add(best_entry.path)
    return [entry for entry in entries if entry.path not in keep]


def remove(entry: CheckpointEntry) -> None:
    """Remove a checkpoint; at no moment is a part of it taken for a whole one.

    Raises:
        OSError: it is still there.
    """
    trash = entry.path.with_name(f"{TRASH}{entry.path.name}")
    os.rename(entry.path, trash)
    clear(trash)


def discard(place: Path) -> None:
    """Remove what could not be committed; what cannot be removed either is a leftover, or a whole checkpoint."""
    trash = place.with_name(f"{TRASH}{place.name.removeprefix(PARTIAL)}")
    try:
        os.rename(place, trash)
    except OSError:
        trash = place if place.name.startswith(PARTIAL) else trash
    clear(trash)


def clear(path: Path) -> None:
    """Remove something of ours as far as possible; what is left is collected at the next start."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)


@dataclass(frozen=True)
class CheckpointRotation:
    """Which checkpoints are kept, and where.

    Attributes:
        directory: made when the first checkpoint is saved.
        keep_last: how many of the latest are kept.
        keep_best: whether the one with the best evaluation is kept too; or the name of a metric, or of a number that
            `checkpoint_metadata` returns, with `"min"` or `"max"`. A checkpoint that is made before the number exists
            is not the best.
        prefix: only `checkpoint`; names begin with the frame.

    Raises:
        ConfigError: an argument that cannot be used.
    """

    directory: str | Path
    keep_last: int = 2
    keep_best: KeepBest | None = True
    prefix: str = "checkpoint"

    def __post_init__(self) -> None:
        if isinstance(self.keep_last, bool) or not isinstance(self.keep_last, int):
            raise ArgumentTypeError(f"keep_last = {self.keep_last!r}: expected a number of checkpoints")
        if self.keep_last < 1:
            raise ConfigError(f"keep_last = {self.keep_last}: at least one checkpoint is kept")
        if self.prefix != "checkpoint":
            raise ConfigError(f"prefix = {self.prefix!r}: names of checkpoints begin with the frame; leave it out")
        if self.keep_best is None or isinstance(self.keep_best, bool):
            return
        if not isinstance(self.keep_best, tuple) or len(self.keep_best) != 2:
            raise ArgumentTypeError(f"keep_best = {self.keep_best!r}: expected a bool, or (metric, 'min' or 'max')")
        name, mode = self.keep_best
        if not isinstance(name, str) or not name or mode not in ("min", "max"):
            raise ConfigError(f"keep_best = {self.keep_best!r}: expected the name of a metric, and 'min' or 'max'")

    def checkpoints(self) -> tuple[Path, ...]:
        """Return the folders of the checkpoints that there are, oldest first."""
        return tuple(entry.path for entry in scan(Path(self.directory)).entries)

    def latest(self) -> Path | None:
        """Return the folder of the latest checkpoint."""
        return next(reversed(self.checkpoints()), None)

    def best(self) -> Path | None:
        """Return the folder of the best checkpoint; None where none is known to be, or none is kept as the best."""
        if not self.keep_best:
            return None
        by = self.keep_best if isinstance(self.keep_best, tuple) else None
        entry = best(scan(Path(self.directory)).entries, by)
        return None if entry is None else entry.path
