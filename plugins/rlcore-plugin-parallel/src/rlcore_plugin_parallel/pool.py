"""The worker processes seen from the learner: starting them, waiting for them in bounded time, and ending them."""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final

from rlcore import EnvError, RlcoreError, errors
from rlcore.process import STOPPING, companion
from rlcore.types import Heart
from rlcore_plugin_parallel.memory import Counters
from rlcore_plugin_parallel.worker import Assignment, main

log = logging.getLogger(__name__)

_TICK: Final = 0.1
_START_SECONDS: Final = 120.0
_CLOSE_SECONDS: Final = 5.0
_STACK_SECONDS: Final = 1.0


class _Process:
    """One worker.

    Attributes:
        envs: numbers of its first and its last env.
        pipe: to it.
        still: seconds that it did not move while somebody waited for it.
    """

    def __init__(self, context: Any, assignment: Assignment) -> None:
        self.index = assignment.index
        self.envs = (assignment.envs.start, assignment.envs.stop - 1)
        self.stacks = None if assignment.stacks is None else Path(assignment.stacks)
        self.still, self.beats = 0.0, -1
        self.pipe, theirs = context.Pipe()
        # not a daemon, so that an env may start processes of its own
        self.process = context.Process(target=main, args=(assignment, theirs), name=f"collector-worker-{self.index}")
        self.process.start()
        companion.end_with_this(self.process.pid)
        theirs.close()

    def __str__(self) -> str:
        return f"collector worker {self.index} (envs {self.envs[0]} to {self.envs[1]})"


class Pool:
    """The workers of one collector. When one of them fails, all are ended.

    Args:
        start_method: of `multiprocessing`.
        assignments: one for each worker.
        counters: where they count their steps.
        heart: of the run, kept beating while workers are waited for.
        timeout: seconds without a step after which a worker is taken to hang.

    Raises:
        EnvError: a worker cannot make its envs.
    """

    def __init__(
        self, start_method: str, assignments: Sequence[Assignment], counters: Counters, heart: Heart, timeout: float
    ) -> None:
        context: Any = multiprocessing.get_context(start_method)
        if start_method == "forkserver":
            context.set_forkserver_preload(["rlcore_plugin_parallel.worker"])
        self._counters = counters
        self._heart = heart
        self._timeout = timeout
        self._closed = False
        self._processes: list[_Process] = []
        self._at_exit = partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)
        self._forgotten = weakref.finalize(self, _kill, self._processes)
        self._forgotten.atexit = False
        try:
            with _signals_held():
                for assignment in assignments:
                    self._processes.append(_Process(context, assignment))
            self.receive("up", _START_SECONDS)
        except BaseException:
            self.kill()
            raise

    @property
    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [worker.process.pid for worker in self._processes]

    def send(self, *message: Any, each: Sequence[Any] | None = None) -> None:
        """Send a message to every worker, with `each[worker]` behind it, if given."""
        for worker in self._processes:
            further = () if each is None else (each[worker.index],)
            with contextlib.suppress(BrokenPipeError):  # who waits for its answer hears that it is dead
                worker.pipe.send((*message, *further))

    def ask(self, *message: Any, each: Sequence[Any] | None = None, slow: bool = False) -> list[Any]:
        """Send a message to every worker, and return the answers in order of the workers.

        Args:
            message: what to do, and with what.
            each: a further argument for each worker.
            slow: whether it may take as long as starting does, such as playing episodes again.

        Raises:
            EnvError: as `receive`.
        """
        self.send(*message, each=each)
        return self.receive("answer", max(self._timeout, _START_SECONDS) if slow else self._timeout)

    def receive(self, kind: str, timeout: float | None = None) -> list[Any]:
        """Return the next message of every worker, in order of the workers.

        Raises:
            EnvError: a worker failed, ended, or did not take a step for `timeout` seconds; names it.
        """
        limit = self._timeout if timeout is None else timeout
        messages: dict[int, Any] = {}
        for worker in self._processes:
            worker.still = 0.0
        while len(messages) < len(self._processes):
            missing = [worker for worker in self._processes if worker.index not in messages]
            ready = wait([place for w in missing for place in (w.pipe, w.process.sentinel)], _TICK)
            self._heart.beats += 1
            for worker in missing:
                if worker.pipe in ready or worker.process.sentinel in ready:
                    messages[worker.index] = self._message(worker, kind)
                elif not ready:
                    self._watch(worker, limit)
        return [messages[index] for index in range(len(messages))]

    def close(self) -> None:
        """End every worker, at its next step; one that does not is killed."""
        if self._closed:
            return
        self._counters.stop()
        self.send("close")
        deadline = time.monotonic() + _CLOSE_SECONDS
        for worker in self._processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End every worker at once."""
        self._closed = True
        atexit.unregister(self._at_exit)
        self._forgotten()

    def _message(self, worker: _Process, kind: str) -> Any:
        try:
            what, content = worker.pipe.recv()
        except (EOFError, OSError):
            raise self._failed(EnvError(f"{worker} {self._end_of(worker)}; its batch is discarded")) from None
        if what == "error":
            name, message, stack = content
            error: RlcoreError = getattr(errors, name, EnvError)(f"{worker}: {message}")
            errors.note(error, f"in the worker:\n{stack}")
            raise self._failed(error)
        assert what == kind, f"{worker} says {what}, not {kind}"
        return content

    def _watch(self, worker: _Process, limit: float) -> None:
        """Count a time in which nothing came. Time in which this process stood still does not count."""
        beats = self._counters.beats(worker.index)
        worker.still = worker.still + _TICK if beats == worker.beats else 0.0
        worker.beats = beats
        if worker.still >= limit:
            where = self._write_stacks(worker)
            raise self._failed(EnvError(f"{worker} took no step for {limit:g} s{where}; its batch is discarded"))

    def _write_stacks(self, worker: _Process) -> str:
        """Let a worker that hangs write where it does, and return what to say of it."""
        if worker.stacks is None or worker.process.pid is None or not worker.stacks.exists():
            return " and was killed"
        os.kill(worker.process.pid, signal.SIGURG)
        deadline = time.monotonic() + _STACK_SECONDS
        while not worker.stacks.stat().st_size and time.monotonic() < deadline:
            time.sleep(_TICK / 10)
        written = f"; its stacks are in {worker.stacks.name}" if worker.stacks.stat().st_size else ""
        return f" and was killed{written}"

    def _failed(self, error: RlcoreError) -> RlcoreError:
        self.kill()
        return error

    def _end_of(self, worker: _Process) -> str:
        """Return how a worker ended."""
        worker.process.join(_CLOSE_SECONDS)
        code = worker.process.exitcode
        if code is None:
            return "closed its pipe"
        if code >= 0:
            return f"ended with exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else "of real time"
        why = ", perhaps for lack of memory" if -code == signal.SIGKILL else ""
        return f"was ended by signal {-code} ({name}{why})"


def _close(pool: weakref.ref[Pool]) -> None:
    """Close a pool that nobody closed, before the process ends, which waits for its children."""
    left_open = pool()
    if left_open is not None:
        left_open.close()


def _kill(processes: list[_Process]) -> None:
    for worker in processes:
        if worker.process.is_alive():
            worker.process.kill()
    for worker in processes:
        worker.process.join()
        companion.forget(worker.process.pid)
        worker.pipe.close()
        if worker.stacks is not None and worker.stacks.exists() and not worker.stacks.stat().st_size:
            worker.stacks.unlink()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let processes that are started inside begin without hearing Ctrl-C; this one hears it afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
