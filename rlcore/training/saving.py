"""When the loop saves: at the start, where a checkpoint is due, at the end, and what stands after a failure.

How one is made is in `saver.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.checkpoints.provenance import Provenance
from rlcore.errors import FROM_OUTSIDE, NumericalError, StorageError
from rlcore.plugins.known import lend
from rlcore.process.signals import StopAtOnce
from rlcore.state.exactness import inexact_parts
from rlcore.state.snapshot import Snapshot
from rlcore.training.lockstep import Lockstep
from rlcore.training.parts import TrainerParts
from rlcore.types.part import Part, defines

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class Saving:
    """Saves the state of a loop, and tells of each checkpoint once it is there.

    Args:
        parts: of the trainer.
        take: returns the state of everything, as it is now.
        saved: called with the folder of each new checkpoint.
        enter: called with the name of the phase when saving begins.

    Attributes:
        saver: writes the checkpoints; None for a run that writes nothing.
        busy: whether a checkpoint is being written that the loop waits for.
        last_good: keeps the states in which nothing is half done; None where nothing does.
    """

    def __init__(
        self,
        parts: TrainerParts,
        take: Callable[[], Snapshot],
        saved: Callable[[Path], None],
        enter: Callable[[str], None],
    ) -> None:
        self.saver = parts.saver()
        self.busy = False
        self.last_good = None if self.saver is None else self.saver.last_good
        self._lockstep = Lockstep(parts.group)
        self._parts = parts
        self._progress = parts.progress
        self._take = take
        self._saved = saved
        self._enter = enter

    def now(self) -> Path | None:
        """Save a checkpoint, tell of it and return its folder; of several ranks all call this, and the first one saves.

        Raises:
            NumericalError: a tensor of the model or an optimizer is not finite.
            StorageError: it cannot be written.
        """
        path = self.quietly()
        if path is not None:
            self._saved(path)
        return path

    def quietly(self) -> Path | None:
        """Do the same and tell nobody, where no hook has been set up."""
        if self.saver is None and not self._lockstep.together:
            return None
        self.acknowledge(wait=True)
        snapshot, provenance = self._state_of_all_ranks(), self._provenance()
        if self.saver is None:  # what this rank has is with the first
            return None
        with self._at_work():
            return self.saver.save(snapshot, provenance)

    def check_place(self) -> None:
        """See that what is written now can be found again.

        Raises:
            StorageError: the run folder was removed or replaced.
        """
        if self._parts.store is not None:
            self._parts.store.check_place()

    def at_start(self) -> None:
        """Save the beginning, so that a run can be resumed from its first moment on."""
        if self._first_says(self.saver is not None and self.saver.saved_at is None):
            self.now()

    def if_due(self, evaluation: float | None) -> None:
        """Save where a checkpoint is due, in the background if the config says so.

        Args:
            evaluation: mean return of the evaluation that was made here, if there was one.
        """
        self.acknowledge()
        if not self._first_says(self.saver is not None and self.saver.due(self._progress, evaluation)):
            return
        if self.saver is None:
            self._state_of_all_ranks()
            return
        try:
            if self.saver.in_background:
                self.acknowledge(wait=True)
                self.saver.begin(self._state_of_all_ranks(), self._provenance())
            else:
                self.now()
        except StorageError as error:
            self.saver.tolerate(error)

    def at_end(self, news: bool) -> None:
        """Save what came since the latest checkpoint; `news`: whether there is something although no frame came."""
        saver = self.saver
        if self._first_says(saver is not None and (news or self._progress.now != saver.saved_at)):
            self.now()

    def acknowledge(self, wait: bool = False) -> None:
        """Tell of the checkpoint that was written while training went on, as soon as it is there."""
        if self.saver is None or not self.saver.waiting:
            return
        with self._at_work():
            path = self.saver.finished(wait)
        if path is not None:
            self._saved(path)

    def last_good_due(self, now: int) -> bool:
        """Return whether the time has come to keep a copy of the state of a moment of the run's clock."""
        return self.last_good is not None and self.last_good.due(now)

    def keep_last_good(self) -> None:
        """Keep a copy of the state, where nothing is half done."""
        if self.last_good is not None:
            self.last_good.keep(self._take)

    def what_stands(self, error: BaseException, batch: TensorDict | None) -> None:
        """Save the state before a failure; the iteration that failed, with its `batch`, is discarded."""
        if self.saver is None:
            return
        if isinstance(error, StopAtOnce):
            self.saver.abandon()
        if isinstance(error, StopAtOnce | StorageError):
            return
        if isinstance(error, NumericalError) and batch is not None:
            self.saver.save_faulty_batch(batch, self._progress, self._parts.provenance)
        try:
            with self._at_work():
                paths = (self.saver.close(), self.saver.save_last_good(self._parts.provenance))
            for path in paths:
                if path is not None:
                    self._saved(path)
        except FROM_OUTSIDE:
            raise
        except BaseException:
            unit = self._progress.unit
            log.exception("a hook failed at the checkpoint of %s %s; the first error stands", unit, self.saver.saved_at)

    def _state_of_all_ranks(self) -> Snapshot:
        """Return the state of the run, which of several ranks the first one has."""
        if not self._lockstep.together:
            return self._take()
        keepers = {name for name, part in self._parts.stateful.items() if defines(part, Part.forget_episodes)}
        snapshot: Snapshot = lend("rlcore.training", "gathered")(self._parts.group, self._take(), keepers)
        return snapshot

    def _first_says(self, flag: bool) -> bool:
        return self._lockstep.first_says(flag, self._progress.now)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    def _provenance(self) -> Provenance:
        """Return what the manifest of a checkpoint made now says."""
        self._enter("saving")
        self._parts.provenance = self._parts.provenance.with_reasons(inexact_parts(self._parts.stateful))
        return self._parts.provenance
