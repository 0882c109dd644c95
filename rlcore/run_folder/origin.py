"""Which run the checkpoints of a folder are of, and which config wrote them.

A manifest says both. So a config that was damaged or edited is found out, and a checkpoint of another run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.checkpoints.manifest import CheckpointEntry, scan
from rlcore.config.changes import recorded
from rlcore.errors import ConfigError
from rlcore.run_folder.folder import CHECKPOINTS, read_config
from rlcore.run_folder.run_id import ID_FILE, read_id


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
            f"the checkpoint is of another run: its manifest has the run id {self.run_id}, this folder has "
            f"{run_id} ({ID_FILE}); move the checkpoint away if it was copied here by mistake"
        )


def origin_in(folder: Path, entry: CheckpointEntry) -> Origin:
    """Return the origin of a checkpoint that is read from a run folder.

    Raises:
        ConfigError: it is of another run than the folder.
    """
    origin = Origin.of(folder, entry)
    if foreign := origin.foreign(read_id(folder)):
        raise ConfigError(f"{entry.path}: {foreign}; to take it all the same, name its own folder")
    return origin


def latest_checkpoint(folder: Path) -> CheckpointEntry | None:
    """Return the checkpoint of a run folder that was saved last, of those whose manifest can be read, if there is one.

    One of a later frame may stand there, which was damaged and could not be loaded.

    Raises:
        StorageError: the checkpoints cannot be listed.
    """
    entries = scan(folder / CHECKPOINTS).entries
    return max(entries, key=lambda entry: (entry.manifest["time"], entry.frames), default=None)
