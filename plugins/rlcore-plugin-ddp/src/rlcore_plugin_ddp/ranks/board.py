"""Memory in which the supervisor of a run and its ranks see each other; it has no name in any file system.

Nothing in it needs a lock: every word has one writer.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from rlcore.process import nameless_file

# words of 64 bits: in the first line what the supervisor says, then a line for each rank, as long as one of a cache
_LINE: Final = 8
_STOP = 0
_PULSE, _LOST, _OUTCOME, _FRAMES, _BEGUN, _KEPT = range(6)
# words for the text in which a rank says why it ends
_TEXT: Final = 128
# places in which a rank keeps its state in turn, so that one is whole while the other is written
_PLACES: Final = 2


class Kept(NamedTuple):
    """A state that every rank has kept.

    Attributes:
        place: in which each has it.
        frames: at which it was taken, or updates of a run that is counted in them.
    """

    place: int
    frames: int


class Board:
    """The memory as one process sees it.

    Args:
        size: of the ranks.
        fds: of the memory, in a process that did not make it.

    Attributes:
        fds: the file descriptors: of the words, then two for each rank, in which it keeps its state.
    """

    def __init__(self, size: int, fds: Sequence[int] = ()) -> None:
        self.size = size
        self.fds = tuple(fds) or tuple(nameless_file(f"rlcore-ranks-{number}") for number in range(1 + _PLACES * size))
        length = 8 * (_LINE * (1 + size) + _TEXT * size)
        if not fds:
            os.truncate(self.fds[0], length)
        self._memory = mmap.mmap(self.fds[0], length)
        self._words = memoryview(self._memory).cast("q")

    @property
    def stop(self) -> int:
        """The number of the signal that asks the run to stop; 0 while none does."""
        return self._words[_STOP]

    @stop.setter
    def stop(self, number: int) -> None:
        self._words[_STOP] = number

    def begin_generation(self, kept: Kept | None = None) -> None:
        """Forget what the ranks before said, before others are started, but for the state from which these go on."""
        self._words[_LINE:] = memoryview(bytearray(8 * (_LINE + _TEXT) * self.size)).cast("q")
        if kept is not None:
            for rank in range(self.size):
                self.keeps(rank, kept.place, kept.frames)

    def place(self, rank: int, place: int) -> int:
        """Return the file descriptor of one of the two places of a rank."""
        return self.fds[1 + _PLACES * rank + place]

    def keeps(self, rank: int, place: int, frames: int | None) -> None:
        """Say, as a rank, that a place holds the whole state of a frame; or, with None, that it does not any more."""
        self._words[self._line(rank) + _KEPT + place] = 0 if frames is None else 1 + frames

    def kept_by(self, rank: int) -> dict[int, int]:
        """Return the frames of the states that one rank has kept, by their places."""
        words = {place: self._words[self._line(rank) + _KEPT + place] for place in range(_PLACES)}
        return {place: word - 1 for place, word in words.items() if word}

    def kept(self) -> Kept | None:
        """Return the latest state that all ranks have kept; None where there is none."""
        found = []
        for place in range(_PLACES):
            numbers = {self._words[self._line(rank) + _KEPT + place] for rank in range(self.size)}
            if len(numbers) == 1 and numbers != {0}:
                found.append(Kept(place, numbers.pop() - 1))
        return max(found, key=lambda kept: kept.frames, default=None)

    def pulse(self, rank: int, frames: int) -> None:
        """Say, as a rank, that its threads run, and how far it is."""
        line = self._line(rank)
        self._words[line + _PULSE] += 1
        self._words[line + _FRAMES] = frames

    def begun(self, rank: int) -> None:
        """Say, as a rank, that it is built and begins to train."""
        self._words[self._line(rank) + _BEGUN] = 1

    def ends(self, rank: int, code: int) -> None:
        """Say, as a rank, that it ends by itself and with which exit code."""
        self._words[self._line(rank) + _OUTCOME] = 1 + code

    def dies(self, rank: int, why: str, lost: int | None = None) -> None:
        """Say, as a rank, why it ends.

        Args:
            rank: which one.
            why: in words.
            lost: the rank that is to blame, where it is another one.
        """
        text = why.encode()[: 8 * _TEXT]
        begin = self._text(rank)
        self._memory[begin : begin + len(text)] = text
        self._words[self._line(rank) + _LOST] = 0 if lost is None else 1 + lost

    def why(self, rank: int) -> str:
        """Return why a rank says that it ends; nothing where it did not say so."""
        begin = self._text(rank)
        return self._memory[begin : begin + 8 * _TEXT].rstrip(b"\0").decode(errors="ignore")

    def lost(self, rank: int) -> int | None:
        """Return the rank that is to blame for the end of another, as that one says; None where it blames none."""
        word = self._words[self._line(rank) + _LOST]
        return None if not word else word - 1

    def has_begun(self, rank: int) -> bool:
        """Return whether a rank trains, or has."""
        return bool(self._words[self._line(rank) + _BEGUN])

    def outcome(self, rank: int) -> int | None:
        """Return the exit code with which a rank says that it ends; None where it says nothing."""
        code = self._words[self._line(rank) + _OUTCOME]
        return None if not code else code - 1

    def pulses(self) -> list[int]:
        """Return, by rank, what changes as long as its threads run."""
        return [self._words[self._line(rank) + _PULSE] for rank in range(self.size)]

    def reached(self) -> int:
        """Return how far the ranks are, on the clock of the run."""
        return max(self._words[self._line(rank) + _FRAMES] for rank in range(self.size))

    def _line(self, rank: int) -> int:
        return _LINE * (1 + rank)

    def _text(self, rank: int) -> int:
        """Return the byte at which the text of a rank begins."""
        return 8 * (_LINE * (1 + self.size) + _TEXT * rank)
