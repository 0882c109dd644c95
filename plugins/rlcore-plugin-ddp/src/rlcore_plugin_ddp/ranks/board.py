"""What the supervisor of a run and its ranks see of each other, and the places for states that outlive a rank."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from rlcore.process import Board, nameless_file

# words of the first line, which the supervisor and its template write
_STOP, _WANTED = range(2)
# words of a rank's line, of which the first ones travel where it is on another host
_FRAMES, _LOST, _OUTCOME, _BEGUN, _SENT, _TEXTS, _TOLD, _PULSE, _KEPT = range(9)
# where the text begins in which a rank says why it ends, and how long a line is with it
_WHY: Final = 16
_LINE: Final = _WHY + 128
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


class RankBoard:
    """The board of a run with ranks, as one process sees it.

    Args:
        size: of the ranks.
        fds: of the memory, in a process that did not make it.

    Attributes:
        fds: the file descriptors: of the words, then two for each rank, in which it keeps its state.
    """

    def __init__(self, size: int, fds: Sequence[int] = ()) -> None:
        self.size = size
        self.fds = tuple(fds) or tuple(nameless_file(f"rlcore-ranks-{number}") for number in range(1 + _PLACES * size))
        length = 8 * _LINE * (1 + size)
        if not fds:
            os.truncate(self.fds[0], length)
        board = Board(mmap.mmap(self.fds[0], length), _LINE)
        self._head, *self._lines = (board.line(number) for number in range(1 + size))

    @property
    def stop(self) -> int:
        """The number of the signal that asks the run to stop; 0 while none does."""
        return self._head[_STOP]

    @stop.setter
    def stop(self, number: int) -> None:
        self._head[_STOP] = number

    @property
    def wanted(self) -> int | None:
        """The frame at which the state of every rank on other hosts is asked for."""
        return _number(self._head[_WANTED])

    @wanted.setter
    def wanted(self, frames: int | None) -> None:
        self._head[_WANTED] = _word(frames)

    def begin_generation(self, kept: Kept | None = None) -> None:
        """Forget what the ranks before said, before others are started, but for the state from which these go on."""
        self.wanted = None
        for rank, line in enumerate(self._lines):
            line.cast("B")[:] = bytes(line.nbytes)
            if kept is not None:
                self.keeps(rank, kept.place, kept.frames)

    def place(self, rank: int, place: int) -> int:
        """Return the file descriptor of one of the two places of a rank."""
        return self.fds[1 + _PLACES * rank + place]

    def keeps(self, rank: int, place: int, frames: int | None) -> None:
        """Say, as a rank, that a place holds the whole state of a frame; or, with None, that it does not any more."""
        self._lines[rank][_KEPT + place] = _word(frames)

    def kept_by(self, rank: int) -> dict[int, int]:
        """Return the frames of the states that one rank has kept, by their places."""
        words = {place: _number(self._lines[rank][_KEPT + place]) for place in range(_PLACES)}
        return {place: frames for place, frames in words.items() if frames is not None}

    def kept(self) -> Kept | None:
        """Return the latest state that all ranks have kept; None where there is none."""
        first, *others = (self.kept_by(rank).items() for rank in range(self.size))
        common = (Kept(*state) for state in set(first).intersection(*others))
        return max(common, key=lambda kept: kept.frames, default=None)

    def pulse(self, rank: int, frames: int) -> None:
        """Say, as a rank, that its threads run, and how far it is."""
        self._lines[rank][_PULSE] += 1
        self._lines[rank][_FRAMES] = frames

    def begun(self, rank: int) -> None:
        """Say, as a rank, that it is built and begins to train."""
        self._lines[rank][_BEGUN] = 1

    def ends(self, rank: int, code: int) -> None:
        """Say, as a rank, that it ends by itself and with which exit code."""
        self._lines[rank][_OUTCOME] = _word(code)

    def dies(self, rank: int, why: str, lost: int | None = None) -> None:
        """Say, as a rank, why it ends.

        Args:
            rank: which one.
            why: in words.
            lost: the rank that is to blame, where it is another one.
        """
        text, room = why.encode(), self._lines[rank][_WHY:].cast("B")
        room[: len(text)] = text[: len(room)]
        self._lines[rank][_LOST] = _word(lost)

    def why(self, rank: int) -> str:
        """Return why a rank says that it ends; nothing where it did not say so."""
        return bytes(self._lines[rank][_WHY:]).rstrip(b"\0").decode(errors="ignore")

    def lost(self, rank: int) -> int | None:
        """Return the rank that is to blame for the end of another, as that one says; None where it blames none."""
        return _number(self._lines[rank][_LOST])

    def has_begun(self, rank: int) -> bool:
        """Return whether a rank trains, or has."""
        return bool(self._lines[rank][_BEGUN])

    def outcome(self, rank: int) -> int | None:
        """Return the exit code with which a rank says that it ends; None where it says nothing."""
        return _number(self._lines[rank][_OUTCOME])

    def pulses(self) -> list[int]:
        """Return, by rank, what changes as long as its threads run."""
        return [line[_PULSE] for line in self._lines]

    def reached(self) -> int:
        """Return how far the ranks are, on the clock of the run."""
        return max(line[_FRAMES] for line in self._lines)

    def sends(self, rank: int, frames: int | None, texts: int) -> None:
        """Say, as a rank on another host, what is in its mailbox: the state of a frame, and pieces of text."""
        words = self._lines[rank]
        words[_SENT], words[_TEXTS] = _word(frames), texts
        words[_TOLD] += 1

    def sent(self, rank: int) -> int | None:
        """Return the frame of the state that a rank on another host has put into its mailbox."""
        return _number(self._lines[rank][_SENT])

    def texts(self, rank: int) -> int:
        """Return how many pieces of text a rank on another host has put into its mailbox."""
        return self._lines[rank][_TEXTS]

    def line(self, rank: int | None) -> bytes:
        """Return what a rank says, or with None what all are told, for the board of another host."""
        return bytes(self._head if rank is None else self._lines[rank])

    def copy(self, rank: int | None, line: bytes) -> None:
        """Write what `line` of the board of another host has returned."""
        (self._head if rank is None else self._lines[rank]).cast("B")[:] = line

    def hear(self, rank: int, line: bytes) -> None:
        """Write what a rank on another host says: all but its pulse and its states, which this host has itself."""
        words, said = self._lines[rank], memoryview(line).cast("q")
        words[:_PULSE], words[_WHY:] = said[:_PULSE], said[_WHY:]
        words[_PULSE] += 1


def _word(number: int | None) -> int:
    """Return the word for a number, which is 0 for none."""
    return 0 if number is None else 1 + number


def _number(word: int) -> int | None:
    return word - 1 if word else None
