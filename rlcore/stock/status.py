"""Keeps `status.json` true while a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.hooks.specs import hookimpl
from rlcore.run_folder.status import RunState, Status

if TYPE_CHECKING:
    from rlcore.training.loop import Loop


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
    def setup(self, trainer: Loop) -> None:
        """Say that the run began or goes on."""
        write_status(self._status, "running", trainer)

    @hookimpl
    def checkpoint_saved(self, path: Path, trainer: Loop) -> None:
        """Say which checkpoint is the latest."""
        write_status(self._status, "running", trainer)


def write_status(
    status: Status, state: RunState, trainer: Loop, reason: str = "", checkpoint: Path | None = None
) -> None:
    """Write where a run stands, with what it lost.

    Args:
        status: of the run.
        state: of the run.
        trainer: of the run.
        reason: why it is so.
        checkpoint: folder of the latest; default: the latest that this process saved.

    Raises:
        StorageError: the file cannot be written.
    """
    exact = not trainer.parts.provenance.inexact
    newest = checkpoint or trainer.last_checkpoint
    status.write(state, trainer.progress.frames, reason, newest, exact, losses(trainer))


def losses(trainer: Loop) -> dict[str, int]:
    """Return what the run lost, by cause; causes without a loss are left out."""
    found = {
        "episodes dropped by resumes": getattr(trainer.collector, "dropped_episodes", 0),
        "updates skipped as not finite": getattr(trainer.learner, "skipped_updates", 0),
        "checkpoints not written": trainer.saver.failed if trainer.saver else 0,
        "metrics that were not finite": trainer.metrics.not_finite,
        "metrics left out beyond the most names": trainer.metrics.left_out,
        **{f"failures of logger {writer.name}": writer.failures for writer in trainer.metrics.writers},
        "changes of evaluations.csv by others": trainer.parts.evaluations.differences,
        **{f"changes of the files of logger {w.name} by others": w.differences for w in trainer.metrics.writers},
        **{f"records of logger {writer.name} not sent yet": writer.unsent for writer in trainer.metrics.writers},
        **{f"writes left out by logger {writer.name}": writer.left_out for writer in trainer.metrics.writers},
    }
    return {cause: count for cause, count in found.items() if count}
