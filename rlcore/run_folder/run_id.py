"""The id of a run, made once and written into its folder and its checkpoints."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rlcore.checkpoints.manifest import CheckpointEntry, scan
from rlcore.errors import StorageError
from rlcore.files.durable import sync_folder
from rlcore.files.plain_files import plain_file
from rlcore.files.replacement import replace
from rlcore.run_folder.folder import CHECKPOINTS

ID_FILE: Final = "run_id"
_ID: Final = re.compile(r"[0-9a-f]{16}")


def new_id() -> str:
    """Return an id for a new run."""
    return secrets.token_hex(8)


def write_id(folder: Path, run_id: str) -> None:
    """Write the id of a run into its folder, and sync it to disk."""
    replace(folder / ID_FILE, run_id + "\n", durable=True)
    sync_folder(folder)


def read_id(folder: Path) -> str:
    """Return the id of a run from its file; else from its oldest checkpoint with an id, else an empty text."""
    try:
        with plain_file(folder / ID_FILE) as stream:
            written = stream.read(64).decode("ascii", "replace").strip()
    except (OSError, StorageError):
        written = ""
    return written if _ID.fullmatch(written) else _oldest_id(scan(folder / CHECKPOINTS).entries)


def _oldest_id(entries: Sequence[CheckpointEntry]) -> str:
    return next((entry.manifest["run_id"] for entry in entries if entry.manifest["run_id"]), "")
