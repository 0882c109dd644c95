"""A save that is under way: whether it moves can be seen from the files that it writes, whatever writes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

# a sync of many bytes is one call, in which nothing can be seen to move
SYNC_PATIENCE: Final = 10


class MovingSave:
    """One save, for whoever has to tell a slow one from one that hangs.

    Args:
        place: the folder that it writes into.

    Attributes:
        thread: that saves.
        pieces: grows with every part that is done, for what does not show in the files.
        patience: how many times as long as anything else it may stand still.
        given_up: whether nobody waits for it any more.
    """

    def __init__(self, place: Path) -> None:
        self.thread = threading.current_thread()
        self.pieces = 0
        self.patience = 1
        self.given_up = False
        self._place = place

    def mark(self) -> Any:
        """Return what changes as long as it moves."""
        return (self.pieces, self.patience, *sorted(_files(self._place)))


def _files(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size, blocks and time of change of every file below a folder."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                status = os.lstat(path)
            except OSError:  # it was renamed or removed just now
                continue
            yield (path, status.st_size, getattr(status, "st_blocks", 0), status.st_mtime_ns)
