"""The origin of a checkpoint: the id and the config of its run, read from its manifest.

A resume compares them with the run folder, so that it notices an edited config and a checkpoint of another run.
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
    """The run that saved a checkpoint.

    Attributes:
        config: resolved, without versions; empty when it was not recorded.
        run_id: empty when it was not recorded.
        observers: the components that watched the run and did not change it.
    """

    config: Mapping[str, Any]
    run_id: str = ""
    observers: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, entry: CheckpointEntry | None) -> Origin:
        """Return the origin of a checkpoint, with the config of the folder where the checkpoint has none."""
        if entry is None:
            return cls(recorded(read_config(folder)))
        manifest = entry.manifest
        config = manifest["config"] or recorded(read_config(folder))
        return cls(config, manifest["run_id"], tuple(manifest["observers"]))

    def foreign(self, run_id: str) -> str:
        """Return a sentence where the checkpoint is of another run than this id, else an empty text."""
        if not self.run_id or not run_id or self.run_id == run_id:
            return ""
        return (
            f"the checkpoint is of another run: its manifest has the run id {self.run_id}, this folder has "
            f"{run_id} ({ID_FILE}); move the checkpoint away if it was copied here by mistake"
        )


def origin_in(folder: Path, entry: CheckpointEntry) -> Origin:
    """Return the origin of a checkpoint in a run folder.

    Raises:
        ConfigError: the checkpoint is of another run.
    """
    origin = Origin.of(folder, entry)
    if foreign := origin.foreign(read_id(folder)):
        raise ConfigError(f"{entry.path}: {foreign}; to take it all the same, name its own folder")
    return origin


def latest_checkpoint(folder: Path) -> CheckpointEntry | None:
    """Return the readable checkpoint of a run folder that was saved last, or None.

    Raises:
        StorageError: the checkpoints cannot be listed.
    """
    # by time and not by frame: a damaged checkpoint of a later frame may be older, when a resume began before it
    entries = scan(folder / CHECKPOINTS).entries
    return max(entries, key=lambda entry: (entry.manifest["time"], entry.frames), default=None)
