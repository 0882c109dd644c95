"""How a run ends, whatever ends it: what is saved, what the status says, what is printed, and the exit code."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import threading
import traceback
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final

from rlcore.checkpoints.manifest import CheckpointEntry, committed
from rlcore.core_hooks.status import write_status
from rlcore.errors import Interruption, RlcoreError, describe, exit_code_of
from rlcore.process.interrupts import importing
from rlcore.process.watchdog import wait_while_moving
from rlcore.run.ready import Run
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder.status import RunState, Status
from rlcore.types.heart import Heart

log = logging.getLogger(__name__)

# seconds that the last save may stand still, where the main thread is stuck
_LAST_SAVE: Final = 10.0


def unexpected(error: BaseException) -> int:
    """Print an error that is not rlcore's own; return its exit code."""
    traceback.print_exception(error)
    return exit_code_of(error)


def _what_stands(newest: CheckpointEntry | None) -> str:
    return "nothing is saved" if newest is None else f"the latest checkpoint stands, of {newest.place}"


class StoppedAtStart(Interruption):
    """A signal came before the run was built."""


class Ending:
    """Knows how far a run is, and ends it.

    Attributes:
        named: the run folder as the user named it, for messages.
        folder: the same, wherever an env takes the working directory.
        status: says where the run stands.
        heart: counts what moves.
        run: what is trained, as soon as it is built.
    """

    def __init__(self, named: Path) -> None:
        self.named = named
        self.folder = named.absolute()
        self.status = Status(self.folder)
        self.heart = Heart()
        self.run: Run | None = None
        self._release: Callable[[], None] = lambda: None
        self._asked: str | None = None

    @property
    def done(self) -> bool:
        """Whether the run came to its end."""
        return self.run is not None and self.run.trainer.progress.now >= self.run.trainer.progress.total

    @property
    def built(self) -> Run:
        """The run, which is built."""
        assert self.run is not None
        return self.run

    def begin(self, run: Run) -> None:
        """Take the run that was built, and pass on a request to stop that something swallowed until here."""
        self.run = run
        # not before the status says how the run ended: who waits for the folder reads it
        self._release, run.trainer.parts.release = run.trainer.parts.release, self._release
        if self._asked is not None:
            run.trainer.request_stop(self._asked)

    def request_stop(self, name: str) -> None:
        """Stop at the next safe point; before the run is built that is here.

        Raises:
            StoppedAtStart: the first request that comes so early.
        """
        if self.run is not None:
            self.run.trainer.request_stop(name)
        elif self._asked is None:
            self._asked = name
            if not importing():  # which may swallow it, or be left half done; `begin` sees to it then
                raise StoppedAtStart(name)

    def saving(self) -> tuple[Hashable, int] | None:
        """Return what changes while a save moves, and how patient to be with it; None while none goes on."""
        busy = self.run is not None and self.run.trainer.saving.busy
        return (self.heart.mark(), self.heart.patience) if busy else None

    def stopped_at_start(self) -> None:
        """Say what stands of a run that was stopped before it was built."""
        saved = committed(self.folder / run_folder.CHECKPOINTS)
        how = self._how_to_continue() if saved else "nothing is saved; the same command begins the run"
        log.error("stopped by %s before the first frame; %s", self._asked, how)

    def stopped(self) -> None:
        """Write the status of a run whose loop has ended as it should, and say how to go on."""
        trainer = self.built.trainer
        reason, newest = trainer.stop_reason or "", self._newest()
        state: RunState = "done" if self.done else "stopped-resumable"
        write_status(self.status, state, trainer, reason, newest.path if newest else None)
        self._release()
        if not self.done:
            progress = trainer.progress
            saved = "which is saved" if newest and newest.reached == progress.now else _what_stands(newest)
            level = logging.ERROR if reason in signal.Signals.__members__ else logging.INFO  # the exit code is not 0
            log.log(level, "stopped at %s %d, %s; %s", progress.unit, progress.now, saved, self._how_to_continue())

    def failed(self, reason: str, state: RunState = "failed-resumable") -> None:
        """Write the status of a run that ended in its middle, and say whether it can be resumed.

        Args:
            reason: why it ended.
            state: where a checkpoint stands; without one it is `failed`.
        """
        if self.run is None:  # nothing was built, so there is nothing to resume
            return
        trainer = self.run.trainer
        newest = self._newest()
        try:
            write_status(self.status, state if newest else "failed", trainer, reason, newest.path if newest else None)
        except RlcoreError as error:  # it must not hide what ended the run
            log.error("%s", error)
        self._release()
        if newest is not None:
            log.error("%s; %s", _what_stands(newest), self._how_to_continue())

    def last_resort(self, reason: str, state: RunState = "failed-resumable") -> None:
        """Save what can be saved without the main thread, in bounded time, and write the status."""
        if self.run is not None and self.run.trainer.saver is not None:
            saver, provenance = self.run.trainer.saver, self.run.trainer.parts.provenance
            saving = threading.Thread(target=saver.save_last_good, args=(provenance,), daemon=True)
            saving.start()
            wait_while_moving(saving, self.heart, _LAST_SAVE)
        self.failed(reason, state)

    def give_up(self, number: int) -> None:
        """End the process, whose main thread does not react to a signal; called from another thread."""
        name = signal.Signals(number).name
        try:
            self.last_resort(name, "stopped-resumable")
            log.error("%s: the main thread does not stop, so the process ends here", name)
        finally:
            os._exit(128 + number)

    def _newest(self) -> CheckpointEntry | None:
        """Return the latest checkpoint on disk; a save that something ended may have come as far as that."""
        store = self.built.trainer.parts.store
        try:
            return next(reversed(store.entries()), None) if store is not None else None
        except (RlcoreError, OSError) as error:
            log.error("%s", describe(error))
            return None

    def _how_to_continue(self) -> str:
        return f"continue with: rlcore train --resume {shlex.quote(str(self.named))}"
