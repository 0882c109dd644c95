"""Which run a folder and its checkpoints are of: the id that is made once, and the config that wrote them.

A manifest has both. So a config that was damaged or edited is found out, and a checkpoint of another run.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints.manifest import CheckpointEntry, scan
from rlcore.config.changes import recorded
from rlcore.errors import StorageError
from rlcore.files.durable import sync_folder
from rlcore.files.plain_files import plain_file
from rlcore.files.replacement import replace
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE, read_config, write_config

ID_FILE: Final = "run_id"
# the config of a resume that has not saved anything yet
NEXT_CONFIG: Final = f"{CONFIG_FILE}.next"
_ID: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Origin:
    """What a checkpoint says of the run that saved it.

    Attributes:
        config: resolved, without versions; empty when nothing is known of it.
        run_id: empty when nothing is known of it.
        observers: the components that watched.
    """

    config: Mapping[str, Any]
    run_id: str = ""
    observers: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, entry: CheckpointEntry | None) -> Origin:
        """Return the origin of a checkpoint, or of a folder without any; an old one has the config of the folder."""
        if entry is None:
            return cls(recorded(read_config(folder)))
        manifest = entry.manifest
        config = manifest["config"] or recorded(read_config(folder))
        return cls(config, manifest["run_id"], tuple(manifest["observers"]))

    def foreign(self, run_id: str) -> str:
        """Return a sentence when a folder with this id is that of another run, else an empty text."""
        if not self.run_id or not run_id or self.run_id == run_id:
            return ""
        return (
            f"the latest checkpoint is of another run: its manifest has the run id {self.run_id}, this folder has "
            f"{run_id} ({ID_FILE}); move the checkpoint away if it was copied here by mistake"
        )


def newest(folder: Path) -> CheckpointEntry | None:
    """Return the checkpoint of a run folder that was saved last, of those whose manifest can be read, if there is one.

    One of a later frame may stand there, which was damaged and could not be loaded.

    Raises:
        StorageError: the checkpoints cannot be listed.
    """
    entries = scan(folder / CHECKPOINTS).entries
    return max(entries, key=lambda entry: (entry.manifest["time"], entry.frames), default=None)


def new_id() -> str:
    """Return an id for a new run."""
    return secrets.token_hex(8)


def write_id(folder: Path, run_id: str) -> None:
    """Write the id of a run into its folder, so that it outlives a crash."""
    replace(folder / ID_FILE, run_id + "\n", durable=True)
    sync_folder(folder)


def read_id(folder: Path) -> str:
    """Return the id of a run; where its file is gone, that of the oldest checkpoint which has one, else nothing."""
    try:
        with plain_file(folder / ID_FILE) as stream:
            found = stream.read(64).decode("ascii", "replace").strip()
    except (OSError, StorageError):
        found = ""
    return found if _ID.fullmatch(found) else _oldest_id(scan(folder / CHECKPOINTS).entries)


def _oldest_id(entries: Sequence[CheckpointEntry]) -> str:
    return next((entry.manifest["run_id"] for entry in entries if entry.manifest["run_id"]), "")


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
        entry = newest(folder)
        if entry is not None and entry.manifest["config"] == announced:
            os.replace(folder / NEXT_CONFIG, folder / CONFIG_FILE)
            sync_folder(folder)
