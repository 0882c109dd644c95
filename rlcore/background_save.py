"""One save in a thread of its own, while training goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path


class BackgroundSave:
    """Runs a save in a thread; the process may end without it, which leaves what a crash leaves.

    Args:
        save: writes a checkpoint and returns its folder.
    """

    def __init__(self, save: Callable[[], Path]) -> None:
        self._save = save
        self._future: futures.Future[Path] = futures.Future()
        threading.Thread(target=self._run, name="rlcore checkpoint", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def wait(self) -> None:
        """Return when it has ended, well or not."""
        futures.wait([self._future])

    def result(self) -> Path:
        """Wait for its end, and return the folder of the checkpoint.

        Raises:
            BaseException: what the save raised.
        """
        return self._future.result()

    def _run(self) -> None:
        try:
            path = self._save()
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(path)
