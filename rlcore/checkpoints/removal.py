"""Taking away checkpoints that need not be kept, and what could not be committed."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Final

from rlcore.checkpoints.manifest import CheckpointEntry

log = logging.getLogger(__name__)

# what does not count as a checkpoint: one that is being written, and one that is being removed
PARTIAL: Final = ".partial-"
TRASH: Final = ".trash-"


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
