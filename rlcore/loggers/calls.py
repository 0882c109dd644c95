"""The thread of a logger, which makes its calls in order, and the room for calls that wait."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rlcore.loggers import limits
from rlcore.loggers.standing import Act, Standing

# the part of a standstill that a call must last to have caused it
_MOST_OF_IT: Final = 0.8
# seconds; a shorter call causes no standstill
_SHORT: Final = 0.1


class Room:
    """Limits waiting calls to 10,000, and their images and videos to 256 MiB.

    Attributes:
        left_out: number of calls without room, or after the logger was switched off.
        behind: whether the last call had no room; then the next call does not wait for any.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.behind = False
        self._calls = self._bytes = 0
        self._room_freed = threading.Condition()

    def take(self, size: int) -> bool:
        """Take room for a call, and wait a moment for it; return whether there was room.

        Args:
            size: bytes of the image or video; 0 for other calls.
        """
        with self._room_freed:
            if not self._room_freed.wait_for(lambda: self._fits(size), 0 if self.behind else limits.PATIENCE):
                return False
            self._calls += 1
            self._bytes += size
        self.behind = False
        return True

    def give_back(self, size: int) -> None:
        """Free the room of a call that was made."""
        with self._room_freed:
            self._calls -= 1
            self._bytes -= size
            self._room_freed.notify()

    def wait(self) -> None:
        """Wait a moment until a call frees its room."""
        with self._room_freed:
            self._room_freed.wait(limits.PATIENCE)

    def _fits(self, size: int) -> bool:
        return self._calls < limits.CALLS and (not size or self._bytes + size <= limits.MEDIA_BYTES)


class Answer:
    """Result or error of a call in the thread of the logger."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self._call = call

    def make(self) -> None:
        """Make the call."""
        try:
            self.value = self._call()
        except BaseException as error:  # also `SystemExit`, which must end neither the thread nor the run
            self.error = error
        self.done.set()


class _Call(NamedTuple):
    """Call that waits.

    Attributes:
        make: makes the call.
        size: bytes of its room; None for a call without room.
        always: whether it is made although the logger is switched off.
    """

    make: Callable[[], object]
    size: int | None
    always: bool


class CallThread(threading.Thread):
    """Makes the calls of one logger.

    Args:
        room: freed by each call.
        standing: counts the failures of the logger.

    Attributes:
        busy_since: start of the running call (`time.monotonic`); None between calls.
        turns: lock of several such threads, so that one call is made at a time; None where calls may overlap.
    """

    def __init__(self, room: Room, standing: Standing) -> None:
        super().__init__(name=f"log-{standing.name}", daemon=True)
        self.busy_since: float | None = None
        self.turns: threading.Lock | None = None
        self._last = (0.0, 0.0)
        self._room = room
        self._standing = standing
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()

    def put(self, make: Callable[[], object], size: int | None = None, always: bool = False) -> None:
        """Add a call to the queue; see `_Call` for the arguments."""
        self._waiting.put(_Call(make, size, always))

    def end_after_these(self) -> None:
        """End the thread after the calls in the queue."""
        self._waiting.put(None)

    def ended(self, seconds: float) -> bool:
        """Wait up to `seconds` for the end of the thread; return whether it has ended."""
        self.join(seconds)
        return not self.is_alive()

    def filled(self, seconds: float) -> bool:
        """Return whether a single call lasted for most of the last `seconds`."""
        now = time.monotonic()
        since = self.busy_since
        calls = [self._last] if since is None else [self._last, (since, now)]
        return any(min(ended, now) - max(began, now - seconds) >= _MOST_OF_IT * seconds for began, ended in calls)

    def run(self) -> None:
        """Make the calls until the end of the queue, or until the logger is given up."""
        while (call := self._waiting.get()) is not None:
            turn = self._take_turn()
            self.busy_since = began = time.monotonic()
            self._make(call)
            ended = time.monotonic()
            if ended - began > _SHORT:  # short calls after a long one must not hide it from a thread that wakes late
                self._last = (began, ended)
            self.busy_since = None
            if turn is not None:
                turn.release()
            if call.size is not None:
                self._room.give_back(call.size)
            if self._standing.hung:  # given up meanwhile: the rest of the queue would be written late
                return

    def _make(self, call: _Call) -> None:
        act: Act = "flush" if call.size is None else "write"
        try:
            if call.always or not self._standing.off:
                call.make()
                if not call.always:
                    self._standing.succeeded(act)
            elif call.size is not None:
                self._room.left_out += 1
        except BaseException as error:  # also `SystemExit`, which must end neither the thread nor the run
            self._standing.failed(error, act)

    def _take_turn(self) -> threading.Lock | None:
        """Acquire the lock of the next call and return it; None without one, or where another logger hangs with it.

        Waits for such a logger once, for half of the deadline of a call.
        """
        turns = self.turns
        if turns is None or turns.acquire(timeout=limits.DEADLINE / 2):
            return turns
        self.turns = None
        return None
