"""Ends a run in which nothing moves any more, such as one whose env or hook hangs, with its last good state saved.

Parts of the loop count on a `Heart`; a thread looks at it once a second. Time in which the whole process stands still
does not count.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rlcore.errors import Interruption

log = logging.getLogger(__name__)

STACKS_FILE: Final = "stacks.txt"
# interrupts a system call of the main thread; nobody sends it to ask for something, and by default it does nothing
_WAKE: Final = signal.SIGURG
_GRACE_TICKS: Final = 10


class Heart:
    """Counts what moves.

    Attributes:
        beats: grows with every env step, every minibatch and every phase of the loop.
        paused: whether something that is known to take long goes on, such as compiling.
    """

    __slots__ = ("beats", "paused")

    def __init__(self) -> None:
        self.beats = 0
        self.paused = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let what happens inside take as long as it takes."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False
            self.beats += 1


class Hung(Interruption):
    """Nothing moved for too long; no `except Exception` of an env or hook may swallow it."""


class Watchdog:
    """Interrupts the main thread when the heart stands still, and ends the process when that does not help.

    Args:
        heart: what is watched.
        seconds: without a beat; 0 switches the watchdog off.
        folder: where the stacks of all threads are written.
        last_resort: called from the thread of the watchdog before the process ends, to save what can be saved.
        tick: seconds between two looks.
    """

    def __init__(
        self, heart: Heart, seconds: int, folder: Path, last_resort: Callable[[str], None], tick: float = 1.0
    ) -> None:
        self.reason: str | None = None
        self._heart = heart
        self._limit = seconds
        self._folder = folder
        self._last_resort = last_resort
        self._tick = tick
        self._done = threading.Event()
        self._main = threading.main_thread()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch over what happens inside. Only the main thread can be interrupted; elsewhere this does nothing."""
        if not self._limit or threading.current_thread() is not self._main:
            yield
            return
        previous = signal.signal(_WAKE, self._interrupted)
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()
            signal.signal(_WAKE, previous)

    def _watch(self) -> None:
        still, before = 0, self._heart.beats
        while not self._done.wait(self._tick):
            still = 0 if self._heart.paused or self._heart.beats != before else still + 1
            before = self._heart.beats
            if still == self._limit:
                self._interrupt()
            elif still == self._limit + _GRACE_TICKS and self.reason is not None:
                self._end(self.reason)

    def _interrupt(self) -> None:
        """Write the stacks, and raise `Hung` in the main thread."""
        self.reason = f"nothing moved for {self._limit} s in {self._place()}; the stacks are in {STACKS_FILE}"
        with (self._folder / STACKS_FILE).open("w") as stream:
            faulthandler.dump_traceback(stream, all_threads=True)
        signal.pthread_kill(self._main.ident or 0, _WAKE)

    def _interrupted(self, number: int, frame: object) -> None:
        if self.reason is not None and not self._done.is_set():
            raise Hung(self.reason)

    def _end(self, reason: str) -> None:
        """End a process whose main thread cannot be interrupted, because it is inside a library."""
        try:
            self._last_resort(reason)
        finally:
            log.error("%s; the main thread cannot be interrupted, so the process ends here", reason)
            os._exit(3)

    def _place(self) -> str:
        """Return where the main thread is."""
        frame = sys._current_frames().get(self._main.ident or 0)
        if frame is None:
            return "an unknown place"
        summary = traceback.extract_stack(frame)[-1]
        return f"{summary.name} ({summary.filename}:{summary.lineno})"
