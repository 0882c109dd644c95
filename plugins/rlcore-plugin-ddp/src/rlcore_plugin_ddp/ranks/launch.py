"""Which start of ranks a run folder belongs to, so that ranks which are started again go on in it.

Whoever restarts ranks from outside repeats their command, which says nothing of a resume.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rlcore.errors import StorageError
from rlcore.files import plain_file, replace, sync_folder

LAUNCH_FILE: Final = "launch"
_MOST_BYTES: Final = 1000


def write_launch(folder: Path, launch: str) -> None:
    """Write into a run folder which start of ranks it belongs to, so that it outlives a crash."""
    replace(folder / LAUNCH_FILE, launch + "\n", durable=True)
    sync_folder(folder)


def read_launch(folder: Path) -> str:
    """Return which start of ranks a run folder belongs to; empty where none was written, or there is no folder."""
    try:
        with plain_file(folder / LAUNCH_FILE) as stream:
            return stream.read(_MOST_BYTES).decode("utf-8", "replace").strip()
    except (OSError, StorageError):
        return ""
