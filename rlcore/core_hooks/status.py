"""Keeps `status.json` true while a run goes on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.hooks.specs import hookimpl
from rlcore.run_folder.status import RunState, Status

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer


class StatusHook:
    """Writes the status at the start and after each checkpoint.

    Attributes:
        observer: True; it changes nothing.
        internal: True; it belongs to the command, and no figures of hooks speak of it.
    """

    observer: Final = True
    internal: Final = True

    def __init__(self, status: Status) -> None:
        self._status = status

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Say that the run began or goes on."""
        write_status(self._status, "running", trainer)

    @hookimpl
    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Say which checkpoint is the latest."""
        write_status(self._status, "running", trainer)


def write_status(
    status: Status, state: RunState, trainer: Trainer, reason: str = "", checkpoint: Path | None = None
) -> None:
    """Write where a run stands, with what it lost and its last evaluation.

    Args:
        status: of the run.
        state: of the run.
        trainer: of the run.
        reason: why it is so.
        checkpoint: folder of the latest; default: the latest that this process saved.

    Raises:
        StorageError: the file cannot be written.
    """
    newest, result = checkpoint or trainer.last_checkpoint, trainer.last_evaluation
    progress, exact = trainer.progress, not trainer.why_inexact
    evaluation: dict[str, float | None] | None = None
    if result is not None:
        mean = result.mean_return if math.isfinite(result.mean_return) else None
        evaluation = {"now": result.frames, "mean_return": mean, "episodes": len(result.returns)}
    status.write(state, progress.now, reason, newest, exact, trainer.lost(), progress.clock, evaluation)
