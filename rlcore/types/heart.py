"""A save that is under way: whether it moves can be seen from the files that it writes, whatever writes them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
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
            blocks = status.st_blocks if sys.platform != "win32" else 0
            yield (path, status.st_size, blocks, status.st_mtime_ns)


class Heart:
    """Counts what moves.

    Attributes:
        beats: grows with every env step, every minibatch and every phase of the loop.
        paused: whether something that is known to take long goes on, such as compiling.
        saves: those that are under way.
    """

    __slots__ = ("beats", "paused", "saves")

    def __init__(self) -> None:
        self.beats = 0
        self.paused = False
        self.saves: list[MovingSave] = []

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let what happens inside take as long as it takes."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False
            self.beats += 1

    @contextmanager
    def save(self, place: Path) -> Iterator[MovingSave]:
        """Let a save that happens inside take as long as it moves.

        Args:
            place: the folder that it writes into.
        """
        save = MovingSave(place)
        self.saves.append(save)
        try:
            yield save
        finally:
            self.saves.remove(save)

    @property
    def patience(self) -> int:
        """How many times as long as usual the saves that are under way may stand still."""
        return max((save.patience for save in tuple(self.saves) if not save.given_up), default=1)

    def beat(self) -> None:
        """Count one; for what takes a function."""
        self.beats += 1

    def mark(self) -> Hashable:
        """Return what changes while something moves."""
        return (self.beats, *(save.mark() for save in tuple(self.saves) if not save.given_up))
