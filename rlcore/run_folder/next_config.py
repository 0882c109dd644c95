"""The config of a resume, beside that of the run until a checkpoint is of it.

A crash in between leaves both, and the latest checkpoint says which of them counts.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Final

from rlcore.config.changes import recorded
from rlcore.errors import StorageError
from rlcore.files.durable import sync_folder
from rlcore.run_folder.folder import CONFIG_FILE, read_config, write_config
from rlcore.run_folder.origin import latest_checkpoint

# the config of a resume that has not saved anything yet
NEXT_CONFIG: Final = f"{CONFIG_FILE}.next"


def announce(folder: Path, resolved: dict[str, Any]) -> None:
    """Write the config that the first checkpoint of a resume will be of, beside that of the run."""
    write_config(folder, resolved, NEXT_CONFIG)


def settle(folder: Path, resolved: dict[str, Any]) -> None:
    """Make a config that of the run, once a checkpoint is of it."""
    write_config(folder, resolved)
    with contextlib.suppress(OSError):
        (folder / NEXT_CONFIG).unlink()


def settle_after_crash(folder: Path) -> None:
    """Put the announced config in its place where a crash came between its first checkpoint and that."""
    announced = recorded(read_config(folder, NEXT_CONFIG))
    if not announced:
        return
    with contextlib.suppress(OSError, StorageError):  # the folder cannot be listed, or is not to be written to
        entry = latest_checkpoint(folder)
        if entry is not None and entry.manifest["config"] == announced:
            os.replace(folder / NEXT_CONFIG, folder / CONFIG_FILE)
            sync_folder(folder)
