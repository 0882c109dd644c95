"""Saving a checkpoint in a thread, while training goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Final

from rlcore.errors import StorageError
from rlcore.types.heart import Heart

# between two looks at whether the heart has given the save up: that wakes nobody who waits
_LOOK_SECONDS: Final = 0.2


class BackgroundSave:
    """Runs a save in a thread. Where the process ends before it, the checkpoint is unfinished as after a crash.

    Args:
        save: writes a checkpoint and returns its folder.
        heart: lists the saves that write, and marks those that stood still for too long as given up.
    """

    def __init__(self, save: Callable[[], Path], heart: Heart) -> None:
        self._save = save
        self._heart = heart
        self._future: futures.Future[Path] = futures.Future()
        self._thread = threading.Thread(target=self._run, name="rlcore checkpoint", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the save has ended, with a checkpoint or an error."""
        return self._future.done()

    def wait(self) -> None:
        """Wait until the save has ended or is given up."""
        while not self.done and not self._given_up():
            futures.wait([self._future], _LOOK_SECONDS)

    def result(self) -> Path:
        """Wait for the save, and return the folder of the checkpoint.

        Raises:
            StorageError: the save was given up.
            BaseException: the error of the save.
        """
        self.wait()
        if not self.done:
            raise StorageError("the checkpoint that was being written in the background did not move and is given up")
        return self._future.result()

    def _given_up(self) -> bool:
        return any(save.given_up for save in tuple(self._heart.saves) if save.thread is self._thread)

    def _run(self) -> None:
        try:
            path = self._save()
        except BaseException as error:  # also what ends threads: `result` raises it in the thread that waits
            self._future.set_exception(error)
        else:
            self._future.set_result(path)
