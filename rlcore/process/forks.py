"""What becomes of a process that an env or a hook forks from the one that trains.

Its copy of the training loop must never go on, since two processes would train in one folder; and it ends with the
process that it came from.
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

# of linux/prctl.h, which Python has no name for
_PR_SET_PDEATHSIG: Final = 1


class _ForkedBeats:
    """The beats of a heart in a process that was forked from the one that trains: the next one ends the process.

    A process of `multiprocessing` has a function of its own to run and never comes back, so it may beat, as when it
    makes envs.
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
        os._exit(1)


class _Forks:
    """What is done in every process that is forked from this one."""

    def __init__(self) -> None:
        self.hearts: set[Heart] = set()
        self.end_with: int | None = None
        self.starter: int | None = None
        self._from_main = False
        self._registered = False

    def register(self) -> None:
        """Be called at every fork from now on."""
        if not self._registered:
            self._registered = True
            os.register_at_fork(before=self._note_thread, after_in_child=self._in_child)

    def _note_thread(self) -> None:
        self._from_main = threading.current_thread() is threading.main_thread()

    def _in_child(self) -> None:
        for heart in self.hearts:
            heart.beats = cast("int", _ForkedBeats())
        self.hearts = set()
        # the system means the thread that forked, so this must be one that lasts
        if self._from_main and self.end_with is not None and os.getppid() == self.end_with:
            end_with_parent()
        self.end_with = None


_FORKS: Final = _Forks()


def guard(heart: Heart) -> None:
    """End every process that is forked from now on when its copy of this heart beats."""
    if sys.platform != "win32":  # which has no forks
        _FORKS.hearts.add(heart)
        _FORKS.starter = _starter()
        _FORKS.register()


def release(heart: Heart) -> None:
    """Let a heart beat in forked processes again."""
    _FORKS.hearts.discard(heart)


def _starter() -> int | None:
    """Return the number of the process that started this one by `multiprocessing`, or None."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    parent = None if multiprocessing is None else multiprocessing.parent_process()
    return None if parent is None else parent.pid


def end_forks_with_this() -> None:
    """End every process that the main thread forks from now on, and that does not become another program, with this."""
    if sys.platform == "linux":
        _FORKS.end_with = os.getpid()
        _FORKS.register()


def end_with_parent() -> None:
    """Let the system kill this process when the thread that started it ends, whatever this one does then."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
