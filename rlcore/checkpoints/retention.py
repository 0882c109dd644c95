"""Which checkpoints are kept, and taking away the others and what could not be committed."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from rlcore.checkpoints.manifest import Entry, best

log = logging.getLogger(__name__)

# whether the checkpoint with the best evaluation is kept; or the name of a number in the metadata, and "min" or "max"
KeepBest: TypeAlias = bool | tuple[str, str]

# what does not count as a checkpoint: one that is being written, and one that is being removed
PARTIAL: Final = ".partial-"
TRASH: Final = ".trash-"


def surplus(entries: Sequence[Entry], keep_last: int, keep_best: KeepBest = True) -> list[Entry]:
    """Return the checkpoints that need not be kept.

    Args:
        entries: oldest first.
        keep_last: how many of the newest are kept, at least one.
        keep_best: whether the one with the best evaluation is kept too, or by which number it is the best.
    """
    keep = {entry.path for entry in entries[-max(1, keep_last) :]}
    chosen = best(entries, keep_best if isinstance(keep_best, tuple) else None) if keep_best else None
    if chosen is not None:
        keep.add(chosen.path)
    return [entry for entry in entries if entry.path not in keep]


def remove(entry: Entry) -> None:
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
