"""Ends a run in which nothing moves any more, such as one whose env or hook hangs, with its last good state saved.

Parts of the loop count on a `Heart`; a thread looks at it once a second, and tells the companion that threads of this
process move. Time in which the whole process stands still does not count.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rlcore.errors import Interruption
from rlcore.process import companion
from rlcore.process.board import Stillness
from rlcore.types.heart import Heart, MovingSave

log = logging.getLogger(__name__)

STACKS_FILE: Final = "stacks.txt"
# interrupts a system call of the main thread; nobody sends it to ask for something, and by default it does nothing
_WAKE: Final = signal.SIGURG
# seconds between two looks; between the interruption of the main thread and the end of the process
_TICK: Final = 1.0
_REACTION: Final = 10.0
# what the companion gives this process to end, from a save that moved last on
_LAST_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
# the exit code of an env that hangs
_EXIT_CODE: Final = 3


class Hung(Interruption):
    """Nothing moved for too long; no `except Exception` of an env or hook may swallow it."""


class Watchdog:
    """Interrupts the main thread when the heart stands still, and ends the process when that does not help.

    Args:
        heart: what is watched.
        seconds: without a beat; 0 switches the watchdog off.
        folder: where the stacks of all threads are written.
        last_resort: called from the thread of the watchdog before the process ends, to save what can be saved, in
            bounded time.
        companion: watches from outside that this one does.
    """

    def __init__(
        self,
        heart: Heart,
        seconds: int,
        folder: Path,
        last_resort: Callable[[str], None],
        companion: companion.Companion | None = None,
    ) -> None:
        self.reason: str | None = None
        self._heart = heart
        self._limit = seconds
        self._folder = folder
        self._last_resort = last_resort
        self._companion = companion
        self._done = threading.Event()
        self._main = threading.main_thread()
        self._stillness = Stillness(_TICK)
        self._interrupted = False  # since the main thread moved last
        self._background: dict[MovingSave, Stillness] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch over what happens inside. Only the main thread can be interrupted; elsewhere this does nothing."""
        if not self._limit or threading.current_thread() is not self._main:
            yield
            return
        if self._companion is not None:
            self._companion.moves()  # from here on it expects to hear of this process
        previous = signal.signal(_WAKE, self._raise)
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()
            signal.signal(_WAKE, previous)
            if self._companion is not None:
                self._companion.rests()

    def _watch(self) -> None:
        while not self._done.wait(_TICK):
            if self._companion is not None:
                self._companion.moves(self._heart.paused)
            self._look()

    def _look(self) -> None:
        """Look once at everything that should move."""
        saves = {save: save.mark() for save in tuple(self._heart.saves)}
        patience = max((save.patience for save in saves if save.thread is self._main), default=1)
        # libraries are imported while a run is built, and each takes its time
        pause = time.monotonic() if self._heart.paused else None
        still = self._stillness.look((self._heart.beats, len(sys.modules), pause, *saves.values()))
        if still < self._limit * patience:
            self._interrupted = False
            self._look_behind({save: mark for save, mark in saves.items() if save.thread is not self._main})
        elif not self._interrupted:
            self._interrupted = True
            self._interrupt(f"nothing moved for {int(still)} s in {self._place()}")
        elif still >= self._limit * patience + _REACTION:
            self._end()

    def _look_behind(self, saves: dict[MovingSave, Hashable]) -> None:
        """Look at the saves in the background, which hang unnoticed while the main thread moves."""
        self._background = {save: self._background.get(save) or Stillness(_TICK) for save in saves}
        for save, mark in saves.items():
            still = self._background[save].look(mark)
            if still >= self._limit * save.patience and not save.given_up:
                save.given_up = True
                self._interrupt(f"the checkpoint that is written in the background did not move for {int(still)} s")

    def _interrupt(self, what: str) -> None:
        """Write the stacks, and raise `Hung` in the main thread."""
        self.reason = f"{what}; {self._write_stacks()}"
        signal.pthread_kill(self._main.ident or 0, _WAKE)

    def _write_stacks(self) -> str:
        """Write the stacks of all threads where that is possible, and return what to say of them."""
        try:
            with (self._folder / STACKS_FILE).open("w") as stream:
                faulthandler.dump_traceback(stream, all_threads=True)
            return f"the stacks are in {STACKS_FILE}"
        except OSError:  # the folder is gone, or no further file can be opened
            try:
                faulthandler.dump_traceback(2, all_threads=True)
            except OSError:
                return "the stacks could not be written"
            return "the stacks are above"

    def _raise(self, number: int, frame: object) -> None:
        if self.reason is not None and not self._done.is_set():
            raise Hung(self.reason)

    def _end(self) -> None:
        """End a process whose main thread cannot be interrupted, because it is inside a library."""
        for save in self._heart.saves:
            save.given_up = True
        if self._companion is not None:
            self._companion.end_within(_LAST_SECONDS)
        try:
            self._last_resort(str(self.reason))
            log.error("%s; the main thread cannot be interrupted, so the process ends here", self.reason)
        finally:
            os._exit(_EXIT_CODE)

    def _place(self) -> str:
        """Return where the main thread is."""
        frame = sys._current_frames().get(self._main.ident or 0)
        if frame is None:
            return "an unknown place"
        summary = traceback.extract_stack(frame)[-1]
        return f"{summary.name} ({summary.filename}:{summary.lineno})"


def wait_while_moving(thread: threading.Thread, heart: Heart, seconds: float) -> None:
    """Wait for the end of a thread that saves, as long as the save moves; then it is left alone.

    Args:
        thread: that saves.
        heart: of the run.
        seconds: that the save may stand still, many times as long in a sync.
    """
    beside, stillness = companion.running(), Stillness(_LOOK_SECONDS)
    while thread.is_alive() and stillness.look(heart.mark()) < seconds * heart.patience:
        if beside is not None:
            beside.end_within(_LAST_SECONDS)
        thread.join(_LOOK_SECONDS)
