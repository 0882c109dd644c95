"""The worker processes of a collector: waiting for them in bounded time, replacing those that are lost, ending all."""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Final

from rlcore import EnvError, RlcoreError
from rlcore.types import Heart
from rlcore_plugin_parallel.memory import Counters
from rlcore_plugin_parallel.process import CLOSE_SECONDS, TICK, WorkerLostError, WorkerProcess
from rlcore_plugin_parallel.worker import Task

log = logging.getLogger(__name__)

ALL: Final = slice(None)
_START_SECONDS: Final = 120.0

Recovery = Callable[[int], Sequence[tuple[Any, ...]]]


class Pool:
    """The workers of one collector.

    A worker that ends or hangs is replaced, and is sent again what the one before did not answer. When the restarts are
    spent, or a worker raises an error, all are ended.

    Args:
        start_method: of `multiprocessing`.
        tasks: one for each worker.
        counters: where they count their steps.
        heart: of the run, kept beating while workers are waited for.
        timeout: seconds without a step after which a worker is taken to hang.
        restarts: how many workers are replaced.
        recovery: from the number of a worker to the messages that bring its successor to where it was.

    Attributes:
        workers: seen from here.
        replaced: how many workers were replaced.

    Raises:
        EnvError: a worker cannot make its envs.
    """

    def __init__(
        self,
        start_method: str,
        tasks: Sequence[Task],
        counters: Counters,
        heart: Heart,
        timeout: float,
        restarts: int,
        recovery: Recovery,
    ) -> None:
        self._context: Any = multiprocessing.get_context(start_method)
        if start_method == "forkserver":
            self._context.set_forkserver_preload(["rlcore_plugin_parallel.worker"])
        self.replaced = 0
        self._counters = counters
        self._heart = heart
        self._timeout = timeout
        self._restarts = restarts
        self._recovery = recovery
        self._closed = False
        self.workers: list[WorkerProcess] = []
        self._at_exit = partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)
        self._forgotten = weakref.finalize(self, _kill, self.workers)
        self._forgotten.atexit = False
        try:
            for task in tasks:
                self.workers.append(self._started(task))
            self._wait_for(self.workers, "up", _START_SECONDS)
        except WorkerLostError as lost:
            self.kill()
            raise lost.error from None
        except BaseException:
            self.kill()
            raise

    @property
    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [worker.pid for worker in self.workers]

    def send(self, *message: Any, each: Sequence[Any] | None = None, only: slice = ALL) -> None:
        """Send a message to every worker, or `only` to some, with what `each` has for them behind it, if given."""
        for number, worker in enumerate(self.workers[only]):
            worker.send(message if each is None else (*message, each[number]))

    def ask(self, *message: Any, each: Sequence[Any] | None = None, slow: bool = False, only: slice = ALL) -> list[Any]:
        """Send a message to every worker, and return the answers in order of the workers.

        Args:
            message: what to do, and with what.
            each: a further argument for each worker.
            slow: whether it may take as long as starting does, such as playing episodes again.
            only: the workers that are asked.

        Raises:
            EnvError: as `receive`.
        """
        self.send(*message, each=each, only=only)
        return self.receive("answer", self._slowly if slow else self._timeout, only)

    def receive(self, kind: str, timeout: float | None = None, only: slice = ALL) -> list[Any]:
        """Return the next message of every worker, or `only` of some, in order of the workers.

        Raises:
            EnvError: a worker failed; or it ended, or took no step for `timeout` seconds, and the restarts are spent.
                It names the worker.
        """
        messages: dict[int, Any] = {}
        try:
            while missing := [worker for worker in self.workers[only] if worker.index not in messages]:
                try:
                    self._wait_for(missing, kind, self._timeout if timeout is None else timeout, messages)
                except WorkerLostError as lost:
                    self.replace(lost)
        except RlcoreError:
            self.kill()
            raise
        return [messages[index] for index in sorted(messages)]

    def receive_some(self, kind: str, indices: Sequence[int]) -> dict[int, Any]:
        """Return the next message of each of these workers that has one, by its number; wait until there is one.

        Raises:
            EnvError: as `receive`.
        """
        messages: dict[int, Any] = {}
        workers = [self.workers[index] for index in indices]
        try:
            while not messages:
                try:
                    self._wait_for(workers, kind, self._timeout, messages, some=True)
                except WorkerLostError as lost:
                    self.replace(lost)
        except RlcoreError:
            self.kill()
            raise
        return messages

    def close(self) -> None:
        """End every worker, at its next step; one that does not is killed."""
        if self._closed:
            return
        self._counters.stop()
        self.send("close")
        deadline = time.monotonic() + CLOSE_SECONDS
        for worker in self.workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End every worker at once."""
        self._closed = True
        atexit.unregister(self._at_exit)
        self._forgotten()

    @property
    def _slowly(self) -> float:
        return max(self._timeout, _START_SECONDS)

    def _wait_for(
        self,
        workers: Sequence[WorkerProcess],
        kind: str,
        limit: float,
        messages: dict[int, Any] | None = None,
        some: bool = False,
    ) -> None:
        """Wait for the next message of each of these workers, or of `some`; `messages` takes them, by their numbers.

        Raises:
            WorkerLostError: one of them ended, or took no step for `limit` seconds.
            RlcoreError: what one of them raised.
        """
        messages = {} if messages is None else messages
        for worker in workers:
            worker.stillness.seconds = 0.0
        while missing := [worker for worker in workers if worker.index not in messages]:
            if some and messages:
                return
            ready = self._ready(missing)
            self._heart.beats += 1
            for worker in missing:
                if worker.index in ready:
                    messages[worker.index] = worker.message(kind)
                elif not ready:
                    worker.watch(self._beats(worker), limit)

    def _started(self, task: Task) -> WorkerProcess:
        """Return a worker, which says "up" when its envs are made."""
        return WorkerProcess(self._context, task)

    def _ready(self, workers: Sequence[WorkerProcess]) -> Collection[int]:
        """Wait a moment, and return the numbers of those that say something or have ended."""
        ready = wait([place for worker in workers for place in (worker.pipe, worker.process.sentinel)], TICK)
        return [worker.index for worker in workers if worker.pipe in ready or worker.process.sentinel in ready]

    def _beats(self, worker: WorkerProcess) -> int:
        """Return what changes as long as a worker steps."""
        return self._counters.beats(worker.index)

    def replace(self, lost: WorkerLostError) -> None:
        """Let another process take the place of one that is lost.

        Raises:
            EnvError: the restarts are spent, or its envs cannot be made again.
        """
        worker = lost.worker
        unanswered = list(worker.unanswered)
        while True:
            if self.replaced == self._restarts:
                raise _spent(lost.error, self._restarts) from None
            self.replaced += 1
            log.warning(
                "%s; another process takes its place (%d of %d, [collector] restarts)",
                lost.error,
                self.replaced,
                self._restarts,
            )
            try:
                self._start_again(worker)
                break
            except WorkerLostError as again:
                lost = again
        for message in unanswered:
            worker.send(message)

    def _start_again(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.forget()
        worker.unanswered.clear()
        worker.start()
        self._wait_for([worker], "up", _START_SECONDS)
        for message in self._recovery(worker.index):
            worker.send(message)
            self._wait_for([worker], "answer", self._slowly)


def _spent(error: EnvError, restarts: int) -> EnvError:
    """Return the error of a worker whose place nobody takes."""
    return EnvError(f"{error}; its {restarts} restarts are spent ([collector] restarts)") if restarts else error


def _close(pool: weakref.ref[Pool]) -> None:
    """Close a pool that nobody closed, before the process ends, which waits for its children."""
    left_open = pool()
    if left_open is not None:
        left_open.close()


def _kill(workers: list[WorkerProcess]) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.forget()
