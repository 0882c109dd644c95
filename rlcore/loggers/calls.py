"""The thread in which the calls of one logger are made, in order, and the room for those that wait."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rlcore.loggers import limits
from rlcore.loggers.standing import Act, Standing

# of a time in which no thread ran, how much one call must cover to have been its cause
_MOST_OF_IT: Final = 0.8
# seconds of a call that keeps nobody waiting
_SHORT: Final = 0.1


class Room:
    """Room for 10,000 calls and 256 MiB of images and videos.

    Attributes:
        left_out: how many calls found no room, or came after the logger was switched off.
        behind: whether the last call found none; then the next ones are not waited for.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.behind = False
        self._calls = self._bytes = 0
        self._given_back = threading.Condition()

    def take(self, size: int) -> bool:
        """Take room for a call, waiting a moment for it; return whether there was any.

        Args:
            size: bytes of the image or video; 0 for other calls.
        """
        with self._given_back:
            if not self._given_back.wait_for(lambda: self._fits(size), 0 if self.behind else limits.PATIENCE):
                return False
            self._calls += 1
            self._bytes += size
        self.behind = False
        return True

    def give_back(self, size: int) -> None:
        """Give back the room of a call that was made."""
        with self._given_back:
            self._calls -= 1
            self._bytes -= size
            self._given_back.notify()

    def wait(self) -> None:
        """Wait a moment for any room to be given back."""
        with self._given_back:
            self._given_back.wait(limits.PATIENCE)

    def _fits(self, size: int) -> bool:
        return self._calls < limits.CALLS and (not size or self._bytes + size <= limits.MEDIA_BYTES)


class Answer:
    """What a call gave in the thread of the logger, or raised there."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self._call = call

    def make(self) -> None:
        """Make the call."""
        try:
            self.value = self._call()
        except BaseException as error:  # also an exit: it ends neither the thread nor the run
            self.error = error
        self.done.set()


class _Call(NamedTuple):
    """A call that waits.

    Attributes:
        make: makes it.
        size: bytes of the room that it has taken; None for a call that took none.
        always: whether it is made of a logger that is switched off too.
    """

    make: Callable[[], object]
    size: int | None
    always: bool


class CallThread(threading.Thread):
    """Makes the calls of one logger.

    Args:
        room: that the calls give back.
        standing: of the logger; hears of failures.

    Attributes:
        busy_since: when the call that is being made began (`time.monotonic`); None between calls.
        turns: a lock that lets several such threads make their calls one at a time; None where calls may overlap.
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
        """Let a call be made after those before it; see `_Call` for the arguments."""
        self._waiting.put(_Call(make, size, always))

    def end_after_these(self) -> None:
        """End the thread when the calls before this are made."""
        self._waiting.put(None)

    def ended(self, seconds: float) -> bool:
        """Wait for the end of the thread for at most so long, and return whether it is over."""
        self.join(seconds)
        return not self.is_alive()

    def filled(self, seconds: float) -> bool:
        """Return whether one call lasted for nearly all of the last `seconds`."""
        now = time.monotonic()
        since = self.busy_since
        calls = [self._last] if since is None else [self._last, (since, now)]
        return any(min(ended, now) - max(began, now - seconds) >= _MOST_OF_IT * seconds for began, ended in calls)

    def run(self) -> None:
        """Make the calls, until the end or until the logger is given up."""
        while (call := self._waiting.get()) is not None:
            turn = self._take_turn()
            self.busy_since = began = time.monotonic()
            self._make(call)
            ended = time.monotonic()
            if ended - began > _SHORT:  # a thread that wakes late asks for the long call before the short ones
                self._last = (began, ended)
            self.busy_since = None
            if turn is not None:
                turn.release()
            if call.size is not None:
                self._room.give_back(call.size)
            if self._standing.hung:  # given up in the meantime: what is left in the queue is not written late
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
        except BaseException as error:  # also an exit: it ends neither the thread nor the run
            self._standing.failed(error, act)

    def _take_turn(self) -> threading.Lock | None:
        """Return the lock that is held for the next call; None without one, or where another logger hangs with it.

        That one is waited for once, for half of the time that a logger has.
        """
        turns = self.turns
        if turns is None or turns.acquire(timeout=limits.DEADLINE / 2):
            return turns
        self.turns = None
        return None
