"""Threads that each do one thing at a time for the thread that trains."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch


class _Desk:
    """Where a thread and the one that it works for hand each other things."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.go = threading.Lock()
        self.done = threading.Lock()
        self.go.acquire()
        self.done.acquire()
        self.task: Callable[[], Any] | None = None
        self.threads = 0
        self.result: Any = None
        self.error: BaseException | None = None

    def dismiss(self) -> None:
        """Let the thread end."""
        if self.pid == os.getpid() and self.task is None and self.go.locked():
            self.go.release()


class SideThread:
    """A thread that lasts, since starting one for each task would cost more than most tasks.

    It sleeps between tasks, and computes with as many threads of torch as the one that it works for. A process forked
    from this one, where it does not go on, gets its own.
    """

    def __init__(self) -> None:
        self._desk: _Desk | None = None
        self._thread: threading.Thread | None = None
        self._left_alone = False

    def start(self, task: Callable[[], Any]) -> None:
        """Let the thread begin with a task; `wait` comes before the next one."""
        threads, desk = torch.get_num_threads(), self._desk
        if desk is None or self._left_alone or desk.pid != os.getpid():
            desk = self._desk = self._hire()
        desk.threads = threads
        # Ctrl-C is raised after a call, and so not before the thread has the task
        self._left_alone = True
        desk.task = task
        desk.go.release()

    def wait(self) -> tuple[Any, BaseException | None]:
        """Wait for the task, also through Ctrl-C; return its result, or what was raised in it or here meanwhile."""
        desk, interruption = self._desk, None
        if desk is None or not self._left_alone:
            return None, None
        while True:
            try:
                desk.done.acquire()
                break
            except BaseException as error:  # what a signal raises comes to the caller when nothing runs any more
                interruption = error
                if desk.task is None:
                    break
        self._left_alone = interruption is not None  # then it is unknown who holds which lock
        result, raised = desk.result, desk.error
        desk.result = desk.error = None
        return result, interruption or raised

    def close(self) -> None:
        """Let the thread end, and wait for that; the next task gets another one."""
        desk, thread, self._desk = self._desk, self._thread, None
        if desk is None or thread is None or desk.pid != os.getpid() or self._left_alone:
            return
        desk.dismiss()
        thread.join()

    def _hire(self) -> _Desk:
        desk = _Desk()
        self._thread = threading.Thread(target=_work, args=(desk,), name="rlcore-side", daemon=True)
        self._thread.start()
        weakref.finalize(self, desk.dismiss)
        return desk


def run_side_by_side(tasks: Sequence[Callable[[], Any]], threads: Sequence[SideThread]) -> list[Any]:
    """Do the first task here and each further one on a thread; return their results when all are done.

    Raises:
        BaseException: what a task raised, when no other runs any more.
    """
    raised: BaseException | None = None
    result: Any = None
    try:
        for thread, task in zip(threads, tasks[1:], strict=True):
            thread.start(task)
        result = tasks[0]()
    except BaseException as error:
        raised = error
    others = [thread.wait() for thread in threads]
    for failure in (raised, *(failure for _, failure in others)):
        if failure is not None:
            raise failure
    return [result, *(value for value, _ in others)]


def _work(desk: _Desk) -> None:
    """Do what is laid on the desk until it is nothing."""
    threads = 0
    while True:
        desk.go.acquire()
        task = desk.task
        if task is None:
            return
        try:
            if desk.threads != threads:  # torch counts them by thread
                threads = desk.threads
                torch.set_num_threads(threads)
            desk.result = task()
        except BaseException as error:
            desk.error = error
        task = desk.task = None  # before the release, so that who waits knows of the end although interrupted
        desk.done.release()
