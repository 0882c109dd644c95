"""Signals that stop a run: at its next safe point, or at once after a second Ctrl-C or a SIGQUIT.

When no safe point comes within the grace time, the iteration is interrupted. A thread counts that time: handlers of
signals run in the main thread, which may be inside a library.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Final

from rlcore.errors import Interruption
from rlcore.process import interrupts
from rlcore.process.board import Stillness


def _present(*names: str) -> tuple[signal.Signals, ...]:
    """Return the signals of these names that this system has."""
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


SIGNALS: Final = _present("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM")
AT_ONCE: Final = _present("SIGQUIT")
# sent by a terminal or a scheduler to all processes of a run; the training process alone answers them
STOPPING: Final = tuple(number for number in (*SIGNALS, *AT_ONCE) if number != signal.SIGALRM)
# handled in any case; of the others, what the caller ignores (`nohup`) or handles is left as it is
ALWAYS: Final = (signal.SIGINT, signal.SIGTERM)
# seconds: until the main thread is woken; for its reaction; for its shutdown; that a save may stand still; between two
# looks at a save
_WAKE: Final = 0.2
_REACTION: Final = 5.0
_SHUTDOWN: Final = 20.0
_STANDING: Final = 10.0
_LOOK: Final = 0.2


class StopAtOnce(KeyboardInterrupt, Interruption):
    """Ends the process without a save, after a second Ctrl-C or a SIGQUIT.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__("a second SIGINT" if number == signal.SIGINT else signal.Signals(number).name)
        self.number = number


class GraceExpired(Interruption):
    """Interrupts the iteration after the grace time; an `Interruption`, so that no `except Exception` catches it."""


@contextmanager
def stop_on_signal(
    request_stop: Callable[[str], None],
    grace: float = 20.0,
    saving: Callable[[], tuple[Hashable, int] | None] = lambda: None,
    give_up: Callable[[int], None] = lambda number: None,
) -> Iterator[list[int]]:
    """Call `request_stop` on each of `SIGNALS` inside a block; yields the list of received numbers.

    In another thread than the main one this does nothing, as it cannot handle signals. The previous handlers are put
    back at the end, and at once in a process that is forked inside.

    Args:
        request_stop: called in the main thread with the name of the signal.
        grace: seconds from the first signal until `GraceExpired` is raised.
        saving: returns a mark that changes while a save moves, and a factor for the time that it may stand still; None
            without a save. A save that moves may finish.
        give_up: called with the number of the first signal, in another thread, when the main thread does not react;
            ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    stopping = _Stopping(request_stop, grace, saving, give_up)
    stopping.begin()
    try:
        yield stopping.received
    finally:
        stopping.end()


@contextmanager
def collected_stops() -> Iterator[list[int]]:
    """Collect stop signals for a command that passes them on to its runs; in the main thread alone.

    Signals that the caller ignores, as under `nohup`, stay ignored.

    Yields:
        The numbers of received signals, a list that grows.
    """
    received: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        present = {number: signal.getsignal(number) for number in STOPPING}
        handlers = {n: handler for n, handler in present.items() if n in ALWAYS or handler != signal.SIG_IGN}
    for number in handlers:
        signal.signal(number, lambda number, frame: received.append(number))
    interrupts.hand_over()
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Stopping:
    """Installs the handlers of a block, and counts the grace time in a thread.

    The thread reads signals from a pipe, to which the interpreter writes each number at once. A handler runs only when
    the main thread is back from a library.
    """

    def __init__(
        self,
        request_stop: Callable[[str], None],
        grace: float,
        saving: Callable[[], tuple[Hashable, int] | None],
        give_up: Callable[[int], None],
    ) -> None:
        self.received: list[int] = []
        self._request_stop = request_stop
        self._grace = grace
        self._saving = saving
        self._give_up = give_up
        self._main = threading.get_ident()
        self._previous: dict[int, Any] = {}
        self._arrived: list[int] = []  # read by the thread; as `received`, but perhaps earlier
        self._sent: set[int] = set()  # by the thread to the main thread
        self._expired = self._raised = self._woken = self.over = False
        self.forking = threading.local()  # `mask`: the signal mask of a thread while it forks
        self._sending = threading.Lock()
        self._reading, self._writing = os.pipe()
        self._thread = threading.Thread(target=self._count, name="rlcore signals", daemon=True)

    def begin(self) -> None:
        """Install the handlers."""
        os.set_blocking(self._writing, False)
        self._previous_pipe = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        itself = weakref.ref(self)
        os.register_at_fork(
            before=partial(_before_fork, itself),
            after_in_parent=partial(_after_fork, itself),
            after_in_child=partial(_after_fork, itself, child=True),
        )
        for number in (*SIGNALS, *AT_ONCE):
            handler = signal.getsignal(number)
            if handler == signal.SIG_DFL or (number in ALWAYS and handler is not None):
                self._previous[number] = handler
                signal.signal(number, self._handle)
        self._thread.start()

    def end(self) -> None:
        """Put the previous handlers back, and end the thread."""
        with self._sending:
            self.over = True
        for number in signal.sigpending() & self._sent:
            signal.sigwait([number])  # taken here, so that a signal of the thread reaches no previous handler
        self.put_back()
        with suppress(BlockingIOError):  # a full pipe wakes the thread too
            os.write(self._writing, b"\0")
        self._thread.join()
        self.close()

    def put_back(self) -> None:
        """Install the previous handlers."""
        self.over = True
        signal.set_wakeup_fd(self._previous_pipe)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def close(self) -> None:
        """Close the pipe."""
        for end in (self._reading, self._writing):
            os.close(end)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.over or (self._woken and self._raised):
            return
        if self._expired and not self._raised:  # sent by `_interrupt`, and not by a user
            self._raised = True
            raise GraceExpired(f"no safe point within {self._grace:g} s of {self._first_signal().name}")
        self.received.append(number)
        # two Ctrl-C during a long call of a library call this handler once, and both are in the pipe
        if _at_once(self.received) or _at_once(self._arrived):
            self._raised = True
            raise StopAtOnce(number)
        self._request_stop(signal.Signals(number).name)

    def _first_signal(self) -> signal.Signals:
        return signal.Signals((self.received or self._arrived)[0])

    def _count(self) -> None:
        """Interrupt the iteration after the grace time, and end the process when that does not help."""
        self._hear(None)
        if self._passes(self._grace) and self._saves_stand_still():
            self._interrupt()
        elif _at_once(self._arrived):
            self._wake()
        self._passes(_REACTION, at_once=False)
        if self._raised:  # the main thread has reacted: let it save and shut down
            self._saves_stand_still()
            self._passes(_SHUTDOWN, at_once=False)
        if not self.over:
            self._give_up(self._first_signal())

    def _hear(self, seconds: float | None) -> None:
        """Read signals from the pipe until one is handled here, the time is over, or the block ends."""
        count = len(self._arrived)
        while not self.over and len(self._arrived) == count:
            if not select.select([self._reading], [], [], seconds)[0]:
                return
            numbers = os.read(self._reading, 4096)
            # a library inside the block may have replaced the handler, and then handles the signal itself
            self._arrived += [n for n in numbers if n in self._previous and signal.getsignal(n) == self._handle]

    def _passes(self, seconds: float, at_once: bool = True) -> bool:
        """Wait; return False as soon as the block ends or, with `at_once`, the run is to stop at once."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            if self.over or (at_once and _at_once(self._arrived)):
                return False
            self._hear(remaining)
        return not self.over

    def _saves_stand_still(self) -> bool:
        """Wait while a save moves; return False as soon as the block ends or the run is to stop at once."""
        stillness = Stillness(2 * _LOOK)
        while (save := self._saving()) is not None and stillness.look(save) < _STANDING * save[1]:
            if not self._passes(_LOOK):
                return False
        return True

    def _interrupt(self) -> None:
        """Send the signal again, for which `_handle` raises `GraceExpired` in the main thread."""
        with self._sending:
            if not self.over and signal.getsignal(self._first_signal()) == self._handle:
                self._expired = True
                self._send(self._first_signal())

    def _wake(self) -> None:
        """Send the signal once more when the main thread does not react.

        A signal right before a system call, or to another thread, does not interrupt the call, and the handler waits
        until the call returns.
        """
        self._passes(_WAKE, at_once=False)
        with self._sending:
            number = signal.Signals(self._arrived[-1])
            if not self.over and not self._raised and signal.getsignal(number) == self._handle:
                self._woken = True
                self._send(number)

    def _send(self, number: int) -> None:
        self._sent.add(number)
        signal.pthread_kill(self._main, number)


def _at_once(numbers: Sequence[int]) -> bool:
    """Return whether these signals ask to stop at once."""
    return numbers.count(signal.SIGINT) > 1 or any(number in AT_ONCE for number in numbers)


def _before_fork(stopping: weakref.ref[_Stopping]) -> None:
    """Block signals during a fork: the new process would write its own to the pipe of its parent."""
    block = stopping()
    if block is not None and not block.over:
        block.forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*SIGNALS, *AT_ONCE))


def _after_fork(stopping: weakref.ref[_Stopping], child: bool = False) -> None:
    """Unblock signals after a fork; a new process first gets the previous handlers."""
    block = stopping()
    mask = None if block is None else vars(block.forking).pop("mask", None)
    if block is None or mask is None:
        return
    if child:
        block.put_back()
        block.close()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
