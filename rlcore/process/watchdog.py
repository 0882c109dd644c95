"""The watchdog: ends a run that hangs, as in an env or a hook, and saves its last good state.

The parts of the loop count on a `Heart`. A thread compares the count once a second, and tells the companion that
threads of this process move. Time in which the whole process is stopped does not count.
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
# interrupts a system call of the main thread; nothing else sends it, and without a handler it does nothing
_WAKE: Final = signal.SIGURG
# seconds between two looks; between the interruption of the main thread and the end of the process
_TICK: Final = 1.0
_REACTION: Final = 10.0
# how long this process may take to end after the last move of a save, before the companion kills it
_LAST_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
# the exit code of an env that hangs
_EXIT_CODE: Final = 3


class Hung(Interruption):
    """Interrupts a run that hangs; an `Interruption`, so that no `except Exception` of an env or hook catches it."""


class Watchdog:
    """Interrupts the main thread when the heart stands still, and ends the process when that does not help.

    Args:
        heart: of the run.
        seconds: without a beat until the interruption; 0 switches the watchdog off.
        folder: for the file with the stacks of all threads.
        last_resort: called in the thread of the watchdog before the process ends, to save the last good state; must
            return in bounded time.
        companion: kills the process where this thread cannot run either.
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
        self._interrupted = False  # whether the main thread was interrupted since its last move
        self._background: dict[MovingSave, Stillness] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch a block; in another thread than the main one do nothing, as signals reach the main thread alone."""
        if not self._limit or threading.current_thread() is not self._main:
            yield
            return
        if self._companion is not None:
            self._companion.moves()  # the companion counts silence from the first call on
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
        """Check once whether the heart and the saves have moved."""
        saves = {save: save.mark() for save in tuple(self._heart.saves)}
        patience = max((save.patience for save in saves if save.thread is self._main), default=1)
        # an import counts as a move: while a run is built, libraries take long
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
        """Check the saves in the background, and give up one that stands still while the main thread moves."""
        self._background = {save: self._background.get(save) or Stillness(_TICK) for save in saves}
        for save, mark in saves.items():
            still = self._background[save].look(mark)
            if still >= self._limit * save.patience and not save.given_up:
                save.given_up = True
                self._interrupt(f"the checkpoint that is written in the background did not move for {int(still)} s")

    def _interrupt(self, what: str) -> None:
        """Write the stacks, and send the signal for which `_raise` raises `Hung` in the main thread."""
        self.reason = f"{what}; {self._write_stacks()}"
        signal.pthread_kill(self._main.ident or 0, _WAKE)

    def _write_stacks(self) -> str:
        """Write the stacks of all threads to a file or stderr; return where they are, in words."""
        try:
            with (self._folder / STACKS_FILE).open("w") as stream:
                faulthandler.dump_traceback(stream, all_threads=True)
            return f"the stacks are in {STACKS_FILE}"
        except OSError:  # the folder was removed, or no further file can be opened
            try:
                faulthandler.dump_traceback(2, all_threads=True)
            except OSError:
                return "the stacks could not be written"
            return "the stacks are above"

    def _raise(self, number: int, frame: object) -> None:
        if self.reason is not None and not self._done.is_set():
            raise Hung(self.reason)

    def _end(self) -> None:
        """Save the last good state and end the process, as its main thread is inside a library."""
        for save in self._heart.saves:
            save.given_up = True
        if self._companion is not None:
            self._companion.end_within(_LAST_SECONDS)
        try:
            self._last_resort(str(self.reason))
            log.error("%s; the main thread cannot be interrupted, so the process ends here", self.reason)
        finally:
            os._exit(_EXIT_CODE)  # `sys.exit` would end this thread alone

    def _place(self) -> str:
        """Return the function and line of the main thread."""
        frame = sys._current_frames().get(self._main.ident or 0)
        if frame is None:
            return "an unknown place"
        summary = traceback.extract_stack(frame)[-1]
        return f"{summary.name} ({summary.filename}:{summary.lineno})"


def wait_while_moving(thread: threading.Thread, heart: Heart, seconds: float) -> None:
    """Wait for the end of a thread that saves, or until its save stands still for too long.

    Args:
        thread: writes the checkpoint.
        heart: of the run.
        seconds: how long the save may stand still; a sync may take many times as long.
    """
    beside, stillness = companion.running(), Stillness(_LOOK_SECONDS)
    while thread.is_alive() and stillness.look(heart.mark()) < seconds * heart.patience:
        if beside is not None:
            beside.end_within(_LAST_SECONDS)
        thread.join(_LOOK_SECONDS)
