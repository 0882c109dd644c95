"""What a run saves and when: checkpoints, the last good state after a failure, the batch of one that was not finite.

How a checkpoint gets onto the disk is in the room `checkpoints/`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.checkpoints.background import BackgroundSave
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.errors import NumericalError, StorageError
from rlcore.files.durable import sync_logs
from rlcore.state.snapshot import LastGoodState, Snapshot
from rlcore.training.schedule import SaveSchedule
from rlcore.types.heart import Heart
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

log = logging.getLogger(__name__)

FAULTS: Final = "faults"
# components whose tensors a run is made for; a checkpoint in which one is not finite is worth nothing
LEARNT: Final = ("model", "loss_module", "optimizer")


class Saver:
    """Saves the snapshots of one run.

    Args:
        store: where checkpoints go.
        schedule: when one is due, and what happens when it cannot be written.
        fault_store: where batches that were not finite go.
        logs: returns the log files whose lengths a snapshot holds; they are synced before it counts.
        heart: of the run, which tells a save that moves from one that hangs.

    Attributes:
        saved_at: where the run was at the latest checkpoint, on its clock, or None.
        last: folder of the latest checkpoint of this process.
        last_good: the latest state in which nothing was half done, in memory.
        failed: checkpoints that could not be written, where the run went on all the same.
    """

    def __init__(
        self,
        store: Store,
        schedule: SaveSchedule,
        fault_store: Store,
        logs: Callable[[], Iterable[Path]] = tuple,
        heart: Heart | None = None,
    ) -> None:
        self.saved_at: int | None = None
        self.last: Path | None = None
        self.failed = 0
        self._store = store
        self._schedule = schedule
        self._fault_store = fault_store
        self._logs = logs
        self._heart = Heart() if heart is None else heart
        store.heart = fault_store.heart = self._heart
        self.last_good = LastGoodState()
        self._background: BackgroundSave | None = None
        self._copy: Mapping[str, Tensor] = {}

    @property
    def in_background(self) -> bool:
        """Whether checkpoints that are due are written while training goes on."""
        return self._schedule.in_background

    def save(self, snapshot: Snapshot, provenance: Provenance) -> Path:
        """Save a checkpoint.

        Raises:
            NumericalError: a tensor of the model or an optimizer is not finite.
            StorageError: it cannot be written.
        """
        self.close()
        return self._save(snapshot, provenance)

    def begin(self, snapshot: Snapshot, provenance: Provenance) -> None:
        """Copy a snapshot, and save it in a thread; the one before must have been taken by `finished`.

        The memory of the copy is kept for the next one.
        """
        assert self._background is None, "one save at a time"
        copy = snapshot.copied(into=self._copy)
        self._copy = copy.tensors
        self._background = BackgroundSave(lambda: self._save(copy, provenance), self._heart)

    @property
    def waiting(self) -> bool:
        """Whether a checkpoint was begun that nobody was told of yet."""
        return self._background is not None

    def finished(self, wait: bool = False) -> Path | None:
        """Return the folder of the checkpoint that was begun, once, as soon as it is written.

        Args:
            wait: until it is; else None is returned while it is not.

        Raises:
            NumericalError: a tensor of the model or an optimizer was not finite.
            StorageError: it could not be written, and the config does not say to go on.
        """
        if self._background is None or not (wait or self._background.done):
            return None
        try:
            return self._finish(self._background)
        except StorageError as error:
            self.tolerate(error)
            return None

    def abandon(self) -> None:
        """Wait for nothing any more."""
        self._background = None

    def close(self) -> Path | None:
        """Wait for a save that was begun, and return its folder; what it raises is only logged."""
        try:
            return self._finish(self._background) if self._background is not None else None
        except Exception as error:
            log.error("a checkpoint that was begun is not there: %s", error)
            return None

    def _finish(self, begun: BackgroundSave) -> Path:
        """Wait for a save and take its result; while a signal ends the waiting, it is still the one that runs."""
        begun.wait()
        self._background = None
        return begun.result()

    def _save(self, snapshot: Snapshot, provenance: Provenance) -> Path:
        not_finite = snapshot.not_finite(name for name in snapshot.tree if name.partition(".")[0] in LEARNT)
        if not_finite:
            raise NumericalError(
                f"{', '.join(not_finite[:5])} are not finite at {snapshot.place}; no checkpoint is made of "
                "that, the one before stays the latest"
            )
        sync_logs(self._logs())
        self.last = self._store.save(snapshot, provenance)
        self.saved_at = snapshot.reached
        return self.last

    def due(self, progress: Progress, evaluation: float | None) -> bool:
        """Return whether to save now."""
        return self._schedule.due(progress, evaluation)

    def tolerate(self, error: StorageError) -> None:
        """Go on without the checkpoint where the config says so.

        Raises:
            StorageError: it does not.
        """
        if self._schedule.on_failure == "stop":
            raise error
        self.failed += 1
        log.error("%s; the run goes on ([checkpoint] on_failure = 'warn')", error)

    def save_last_good(self, provenance: Provenance) -> Path | None:
        """Save the last good state, unless that is done already; an error of it must not hide the first."""
        self.close()
        snapshot = self.last_good.snapshot
        if snapshot is None or (self.saved_at is not None and snapshot.reached <= self.saved_at):
            return None
        try:
            path = self.save(snapshot, provenance)
        except Exception as error:
            log.error("the state before the failure could not be saved: %s", error)
            return None
        log.error("the state of %s, before the failure, is saved", snapshot.place)
        return path

    def save_faulty_batch(self, batch: TensorDict, progress: Progress, provenance: Provenance) -> None:
        """Save the batch of an iteration that was not finite, so that the failure can be looked into and repeated."""
        try:
            snapshot = Snapshot.of({"batch": batch.detach().cpu().to_dict()}, progress)
            path = self._fault_store.save(snapshot, replace(provenance, owners={}))
            log.error("the batch that led to it is in %s", path)
        except Exception as error:
            log.error("the batch that led to it could not be saved: %s", error)
