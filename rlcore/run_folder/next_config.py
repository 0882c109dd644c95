"""The config of a resume, which waits beside the config of the run until its first checkpoint.

A crash in between leaves both files; the config in the latest checkpoint decides between them.
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

# the config of a resume until its first checkpoint
NEXT_CONFIG: Final = f"{CONFIG_FILE}.next"


def announce(folder: Path, resolved: dict[str, Any]) -> None:
    """Write the config of a resume beside the config of the run."""
    write_config(folder, resolved, NEXT_CONFIG)


def settle(folder: Path, resolved: dict[str, Any]) -> None:
    """Write the config of a resume over that of the run, at the first checkpoint of the resume."""
    write_config(folder, resolved)
    with contextlib.suppress(OSError):  # one that stays is the same config, so it does no harm
        (folder / NEXT_CONFIG).unlink()


def settle_after_crash(folder: Path) -> None:
    """Put the announced config in its place, where a crash came between its first checkpoint and `settle`."""
    announced = recorded(read_config(folder, NEXT_CONFIG))
    if not announced:
        return
    with contextlib.suppress(OSError, StorageError):  # where the folder cannot be listed or written, both files stay
        entry = latest_checkpoint(folder)
        if entry is not None and entry.manifest["config"] == announced:
            os.replace(folder / NEXT_CONFIG, folder / CONFIG_FILE)
            sync_folder(folder)
