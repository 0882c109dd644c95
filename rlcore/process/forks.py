"""Guards for processes that an env or a hook forks from the training process.

A fork that comes back into its copy of the training loop is ended, as two processes would train in one folder. Forks
also end with the training process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from typing import Final, cast

from rlcore.types.heart import Heart

# from linux/prctl.h; Python has no name for it
_PR_SET_PDEATHSIG: Final = 1


class _ForkedBeats:
    """Replaces the beats of a heart in a fork of the training process; the next beat ends the fork.

    A process of `multiprocessing` may beat, as when it makes envs: it runs a function and never comes back to the loop.
    """

    def __add__(self, beats: int) -> _ForkedBeats:
        if _starter() != _FORKS.starter:
            return self
        with contextlib.suppress(OSError):
            os.write(
                2,
                f"error: process {os.getpid()}, which an env or a hook forked from the training process, came back "
                "into the training loop; it ends here, and training goes on without it\n".encode(),
            )
        os._exit(1)  # an exception could be caught, and handlers of `atexit` belong to the training process


class _Forks:
    """Handles every fork of this process."""

    def __init__(self) -> None:
        self.hearts: set[Heart] = set()
        self.end_with: int | None = None
        self.starter: int | None = None
        self._from_main = False
        self._registered = False

    def register(self) -> None:
        """Install the handlers, once; they cannot be removed."""
        if not self._registered:
            self._registered = True
            os.register_at_fork(before=self._note_thread, after_in_child=self._in_child)

    def _note_thread(self) -> None:
        self._from_main = threading.current_thread() is threading.main_thread()

    def _in_child(self) -> None:
        for heart in self.hearts:
            heart.beats = cast("int", _ForkedBeats())
        self.hearts = set()
        # the system kills the fork at the end of the thread that forked it, so that must be the main thread
        if self._from_main and self.end_with is not None and os.getppid() == self.end_with:
            end_with_parent()
        self.end_with = None


_FORKS: Final = _Forks()


def guard(heart: Heart) -> None:
    """End every later fork of this process at the next beat of its copy of a heart."""
    if sys.platform != "win32":  # which has no forks
        _FORKS.hearts.add(heart)
        _FORKS.starter = _starter()
        _FORKS.register()


def release(heart: Heart) -> None:
    """Take back `guard` for a heart."""
    _FORKS.hearts.discard(heart)


def _starter() -> int | None:
    """Return the pid of the process that started this one by `multiprocessing`, or None."""
    # looked up and not imported: where it is not imported, it started no process
    multiprocessing = sys.modules.get("multiprocessing.process")
    parent = None if multiprocessing is None else multiprocessing.parent_process()
    return None if parent is None else parent.pid


def end_forks_with_this() -> None:
    """End every later fork of the main thread with this process, unless it starts another program."""
    if sys.platform == "linux":
        _FORKS.end_with = os.getpid()
        _FORKS.register()


def end_with_parent() -> None:
    """Tell the system to kill this process at the end of the thread that started it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
