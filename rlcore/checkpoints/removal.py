"""Removing checkpoints that no rule keeps, and the remains of saves that failed."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Final

from rlcore.checkpoints.manifest import CheckpointEntry

log = logging.getLogger(__name__)

# prefixes of folders that `committed` does not list: a checkpoint being written, and one being removed
PARTIAL: Final = ".partial-"
TRASH: Final = ".trash-"


def remove(entry: CheckpointEntry) -> None:
    """Remove a checkpoint.

    Raises:
        OSError: the checkpoint is still there.
    """
    # renamed first, at once: a crash during `rmtree` would leave half a checkpoint under the name of a whole one
    trash = entry.path.with_name(f"{TRASH}{entry.path.name}")
    os.rename(entry.path, trash)
    clear(trash)


def discard(place: Path) -> None:
    """Remove the folder of a save that failed, before or after its commit."""
    trash = place.with_name(f"{TRASH}{place.name.removeprefix(PARTIAL)}")
    try:
        os.rename(place, trash)
    except OSError:  # remove it where it is, unless it is committed: half of it would look like a checkpoint
        trash = place if place.name.startswith(PARTIAL) else trash
    clear(trash)


def clear(path: Path) -> None:
    """Remove a file or folder as far as possible; `Store.collect_leftovers` tries again at the next start."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)
