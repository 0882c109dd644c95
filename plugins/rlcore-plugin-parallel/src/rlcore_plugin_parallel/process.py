"""One worker process seen from the learner: starting it, talking to it, and saying how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rlcore import EnvError, RlcoreError, errors
from rlcore.process import STOPPING, Stillness, companion, how_it_ended
from rlcore_plugin_parallel.forks import wait_for_torch
from rlcore_plugin_parallel.worker import Task, main

TICK: Final = 0.1
CLOSE_SECONDS: Final = 5.0
_STACK_SECONDS: Final = 1.0
# A fork while another thread starts a program inherits the pipe on which that thread waits, and holds it open until the
# worker ends. Of a lock that a fork inherits its own thread remains the owner.
_START: Final = threading.RLock()


class WorkerLostError(Exception):
    """A worker ended, or hangs.

    Attributes:
        worker: which.
        error: what ends the run if nobody takes its place.
    """

    def __init__(self, worker: WorkerProcess, how: str) -> None:
        super().__init__(how)
        self.worker = worker
        self.error = EnvError(f"{worker} {how}; its batch is discarded")


class WorkerProcess:
    """One worker, and who takes its place.

    Args:
        context: of `multiprocessing`.
        task: what it is given.

    Attributes:
        index: number of the worker.
        task: what it is given.
        stillness: for how long it has not moved while somebody waited for it.
        unanswered: the messages that were sent and not answered, in their order.
    """

    def __init__(self, context: Any, task: Task) -> None:
        self.index = task.index
        self.task = task
        self.stillness = Stillness(TICK)
        self.unanswered: deque[tuple[Any, ...]] = deque()
        self._context = context
        self._stacks = None if task.stacks is None else Path(task.stacks)
        self.start()

    def __str__(self) -> str:
        envs = self.task.envs
        return f"collector worker {self.index} (envs {envs.start} to {envs.stop - 1})"

    def start(self) -> None:
        """Start a process, which says "up" when its envs are made."""
        wait_for_torch()
        self.pipe, theirs = self._context.Pipe()
        self.task = self.task.prepared(self._context)
        # not a daemon, so that an env may start processes of its own
        self.process = self._context.Process(
            target=main, args=(self.task, theirs), name=f"collector-worker-{self.index}"
        )
        with _START:
            with _signals_held():
                self.process.start()
            companion.end_with_this(self.process.pid)
        theirs.close()

    def send(self, message: tuple[Any, ...]) -> None:
        """Send a message, which it answers."""
        self.unanswered.append(message)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who waits for its answer hears of its end
            self.pipe.send(message)
            self.task.wake()

    def message(self, kind: str) -> Any:
        """Return the content of its next message.

        Raises:
            WorkerLostError: it ended.
            RlcoreError: what it raised, with its name and stack.
        """
        try:
            what, content = self.pipe.recv()
        except (EOFError, OSError):
            raise WorkerLostError(self, self._end()) from None
        if what == "error":
            name, message, stack = content
            error: RlcoreError = getattr(errors, name, EnvError)(f"{self}: {message}")
            errors.note(error, f"in the worker:\n{stack}")
            raise error
        assert what == kind, f"{self} says {what}, not {kind}"
        if self.unanswered:
            self.unanswered.popleft()
        return content

    def watch(self, beats: int, limit: float) -> None:
        """Look whether it moves, where nothing came.

        Raises:
            WorkerLostError: it took no step for `limit` seconds.
        """
        if self.stillness.look(beats) >= limit:
            raise WorkerLostError(self, f"took no step for {limit:g} s{self._write_stacks()}")

    @property
    def pid(self) -> int:
        """The number of the process."""
        return int(self.process.pid)

    def join(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        self.process.join(seconds)

    def kill(self) -> None:
        """End the process at once."""
        if self.process.is_alive():
            self.process.kill()

    def forget(self) -> None:
        """Let go of a process that was killed."""
        self.process.join()
        self.task = self.task.released()
        companion.forget(self.process.pid)
        self.pipe.close()
        if self._stacks is not None and self._stacks.exists() and not self._stacks.stat().st_size:
            self._stacks.unlink()

    def _write_stacks(self) -> str:
        """Let a worker that hangs write where it does, and return what to say of it."""
        if self._stacks is None or self.process.pid is None or not self._stacks.exists():
            return " and was killed"
        size = self._stacks.stat().st_size
        os.kill(self.process.pid, signal.SIGURG)
        deadline = time.monotonic() + _STACK_SECONDS
        while self._stacks.stat().st_size == size and time.monotonic() < deadline:
            time.sleep(TICK / 10)
        written = f"; its stacks are in {self._stacks.name}" if self._stacks.stat().st_size > size else ""
        return f" and was killed{written}"

    def _end(self) -> str:
        """Return how it ended."""
        self.process.join(CLOSE_SECONDS)
        code = self.process.exitcode
        return "closed its pipe" if code is None else how_it_ended(code)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let processes that are started inside begin without hearing Ctrl-C; this one hears it afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
