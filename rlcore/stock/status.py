"""Keeps `status.json` true while a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.hookspecs import hookimpl
from rlcore.run_folder import Status

if TYPE_CHECKING:
    from rlcore.trainer import Trainer


class StatusHook:
    """Writes the status at the start and after each checkpoint."""

    def __init__(self, status: Status) -> None:
        self._status = status

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Say that the run began or goes on."""
        self._status.write("running", trainer.progress.frames)

    @hookimpl
    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Say which checkpoint is the newest."""
        self._status.write("running", trainer.progress.frames, checkpoint=path)
