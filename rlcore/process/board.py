"""How processes and threads see that others move, and for how long they wait for one that does not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

# seconds of one wait, short so that a stall shows in how late it returns
_TICK: Final = 0.05
# a look that comes so much later than it was to: meanwhile a call held the GIL, or the process was stopped
_STALL: Final = 0.5


class Board:
    """Memory that several processes see, with a line of words for each; a word grows as long as its process moves.

    Nothing in it needs a lock, as every word has one writer. Processes that `multiprocessing` starts can be handed it.

    Args:
        memory: a buffer that they share: a map of `nameless_file`, or an array of `multiprocessing`.
        length: of a line, in words of 64 bits.
    """

    # such a line is one of the processor's cache, so that processes that write do not slow down each other
    LINE: ClassVar[int] = 8

    def __init__(self, memory: Any, length: int = LINE) -> None:
        self._memory = memory
        self._length = length
        self._words = memoryview(memory).cast("B").cast("q")

    def line(self, number: int) -> memoryview:
        """Return the words of a line; what is assigned to them, all processes see."""
        return self._words[number * self._length : (number + 1) * self._length]

    def __reduce__(self) -> tuple[Any, ...]:
        return Board, (self._memory, self._length)


class Stillness:
    """For how long something has stood still: a process, a thread, or a save.

    Time in which this process could not look, as when a library holds the GIL or a signal has stopped it, does not
    count: what is looked at could not move in it either.

    Args:
        most: seconds that count of the time between two looks.
        stalled: called with the seconds of each longer time in which no thread ran.

    Attributes:
        seconds: as of the latest look; whoever begins to wait again sets them to 0.
    """

    def __init__(self, most: float = 2 * _TICK, stalled: Callable[[float], None] = lambda seconds: None) -> None:
        self.seconds = 0.0
        self._mark: Hashable = None
        self._most = most
        self._stalled = stalled
        self._looked = time.monotonic()

    def look(self, mark: Hashable) -> float:
        """Return the seconds since the first look at which `mark` was what it is; it changes with each move."""
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        self.seconds = 0.0 if mark != self._mark else self.seconds + min(passed, self._most)
        self._mark = mark
        if passed > _STALL:
            self._stalled(passed)
        return self.seconds

    def wait(self, done: Callable[[float], bool], seconds: float) -> bool:
        """Wait until something is done, and return whether it is; several waits have the seconds together.

        Args:
            done: waits for at most that many seconds, and returns whether it is done.
            seconds: for which that may take.
        """
        self._looked = time.monotonic()
        while self.seconds < seconds:
            finished = done(min(_TICK, seconds - self.seconds))
            self.look(None)
            if finished:
                return True
        return done(0)


def nameless_file(name: str) -> int:
    """Return the file descriptor of memory without a name, which is gone as soon as no process has it open.

    Args:
        name: for listings of open files.
    """
    memory: Any = getattr(os, "memfd_create", None)  # Linux has it, where the C library that Python was built with does
    if memory is not None:
        return int(memory(name))
    import tempfile  # what it imports would take the companion as long as all else

    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())
