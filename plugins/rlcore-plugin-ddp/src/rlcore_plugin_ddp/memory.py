"""Memory that the ranks of one host share, and in which they wait for each other; nothing here needs torch.

Whoever starts the ranks makes the memory, which has no name in any file system, and hands its file descriptor down:

    with Memory.create(size=2, generation=1) as memory:
        for rank in range(2):
            subprocess.Popen(program, pass_fds=[memory.fd], env=os.environ | memory.environment(rank, deadline=60.0))

In its process a rank finds its group by `rlcore_plugin_ddp.joining.joined()`. When a rank ends before its time, the
others see it by themselves; whoever started them may be quicker: `memory.end(lost=rank)` ends every wait of every rank.
A memory is for one generation. The next one gets another, so that what is left of the last cannot write into it.

Each rank has a line of words, and two places for what it hands the others. In a call it writes into one of the places,
counts the call, waits until all have counted as many, and reads. Two places are enough: nobody gets to the call after
the next before all have read. Sizes of places are powers of two, and the places of each size lie in a part of the
memory of their own; only the pages that were written to take up room.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import time
from typing import Any, Final, Self

from rlcore.errors import ConfigError, RankLost, RlcoreError
from rlcore.process import Board, Stillness, usable_cores

ENVIRONMENT: Final = "RLCORE_GROUP"
KINDS: Final = ("sum_", "share", "gather", "barrier")

# words in the first line: whether the generation is over, for which rank, and its number
_OVER, _LOST, _GENERATION = range(3)
# in the line of a rank: its calls so far, what changes as long as it moves, whether it came, and its last two calls
_CALLS, _BEATS, _CAME, _WHAT = 0, 1, 2, 4
# sizes of places, as powers of two: from a page to more than any model has
_SMALLEST, _LARGEST = 12, 36
# seconds: at first a rank that waits offers the processor to others, then it sleeps, longer and longer
_SPIN: Final = 200e-6
_NAP, _LONGEST_NAP = 50e-6, 2e-3
# seconds between two looks at whether the others live
_LOOK: Final = 0.05


def nap(waited: float) -> float:
    """Return how many seconds a rank sleeps that has waited for so many."""
    return min(max(_NAP, waited / 64), _LONGEST_NAP)


class Memory:
    """The memory as one process sees it.

    Args:
        fd: of the memory.
        size: how many ranks share it.
        generation: of the ranks.
        rank: of this process; None for the one that starts them, which makes no calls.
        deadline: seconds that a rank is waited for without its moving.
        spin: whether to offer the processor for a while before sleeping, for ranks that have a core each.

    Raises:
        RankLost: the generation is over, or another one.
        ConfigError: the rank is here already.
    """

    def __init__(
        self, fd: int, size: int, generation: int, rank: int | None = None, deadline: float = 60.0, spin: bool = True
    ) -> None:
        self.fd = fd
        self.size = size
        self.rank = 0 if rank is None else rank
        self.generation = generation
        self.deadline = deadline
        self._spin = _SPIN if spin else 0.0
        board = Board(mmap.mmap(fd, 2 * size << _SMALLEST))  # all before the first part
        self._head, *self._lines = (board.line(number) for number in range(1 + size))
        self._line = self._lines[self.rank]
        self._others = [(other, line) for other, line in enumerate(self._lines) if other != rank]
        self._calls = 0
        self._parts: dict[int, mmap.mmap] = {}
        if rank is not None:
            self._come()

    @classmethod
    def create(cls, size: int, generation: int = 1) -> Self:
        """Make the memory of a generation of ranks, for the process that starts them.

        Raises:
            ConfigError: this system has no memory without a name.
        """
        if not hasattr(os, "memfd_create"):
            raise ConfigError("several ranks on one host need Linux; remove [ranks], or start them with torchrun")
        fd = os.memfd_create("rlcore-ranks")
        os.truncate(fd, 2 * size << (_LARGEST + 1))
        memory = cls(fd, size, generation)
        memory._head[_GENERATION] = generation
        return memory

    def environment(self, rank: int, deadline: float = 60.0, **more: Any) -> dict[str, str]:
        """Return what a rank has to find in its environment.

        Args:
            rank: its number.
            deadline: seconds that a rank is waited for without its moving.
            more: which group it is, and arguments of that: see `rlcore_plugin_ddp.joining`.
        """
        spin = self.size <= usable_cores()
        arguments = {
            "fd": self.fd,
            "size": self.size,
            "generation": self.generation,
            "deadline": deadline,
            "spin": spin,
        }
        return {ENVIRONMENT: json.dumps({**arguments, "rank": rank, **more})}

    def end(self, lost: int | None = None) -> None:
        """End the generation: every wait and every further call of every rank raises `RankLost`.

        Args:
            lost: the rank for which it ends, if it is one.
        """
        if not self._head[_OVER]:  # the first to see it knows best
            self._head[_LOST] = -1 if lost is None else lost
            self._head[_OVER] = 1

    def beat(self) -> None:
        """Say that this rank moves although it makes no call; the others wait longer for it."""
        self._line[_BEATS] += 1

    def mark(self, rank: int) -> tuple[int, int]:
        """Return what changes as long as a rank moves."""
        return self._lines[rank][_CALLS], self._lines[rank][_BEATS]

    def begin(self, kind: str, nbytes: int) -> int:
        """Begin a call, and return which of its two places this rank writes into.

        Args:
            kind: of the call, one of `KINDS`.
            nbytes: that each rank hands the others.

        Raises:
            RankLost: the generation is over.
        """
        if self._head[_OVER]:
            raise self._ended(kind)
        place = (self._calls + 1) % 2
        self._line[_WHAT + place] = nbytes * len(KINDS) + KINDS.index(kind)
        return place

    def meet(self) -> None:
        """Count the call that was begun, and wait until every rank has.

        Raises:
            RankLost: one has ended or does not move, or the generation is over.
            RlcoreError: one makes another call than this rank.
        """
        what = _WHAT + (self._calls + 1) % 2
        self._calls += 1
        self._line[_CALLS] = self._calls
        for rank, line in self._others:
            if line[_CALLS] < self._calls:
                self._wait(rank, line)
            if line[what] != self._line[what]:
                raise self._apart(rank, line[what])

    def check(self) -> None:
        """Look whether the generation is over.

        Raises:
            RankLost: it is.
        """
        if self._head[_OVER]:
            raise self._ended(self._call())

    def gone(self) -> RankLost | None:
        """Return the error for a rank with a process that has ended, or for a generation that is over."""
        if self._head[_OVER]:
            return self._ended(self._call())
        gone = (rank for rank, _ in self._others if not self._lives(rank))
        return next((self._lose(rank, False, 0.0) for rank in gone), None)

    def part(self, nbytes: int) -> tuple[mmap.mmap, int]:
        """Return the map in which the places of a size lie, all first ones before all second ones, and their size.

        Args:
            nbytes: that have room in a place.
        """
        power = max(_SMALLEST, (nbytes - 1).bit_length())
        if power not in self._parts:
            length = 2 * self.size << power  # that of all smaller parts together too, so that it is the offset as well
            self._parts[power] = mmap.mmap(self.fd, length, offset=length)
        return self._parts[power], 1 << power

    def close(self) -> None:
        """Close the file descriptor: of a rank, whoever still waits for it loses it."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def _come(self) -> None:
        """Take the lock that says that this process lives; the system gives it up with the process."""
        if self._head[_OVER] or self._head[_GENERATION] != self.generation:
            raise self._ended("join")
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self.rank)
        except OSError:
            raise ConfigError(f"rank {self.rank} runs in another process already") from None
        self._line[_CAME] = 1

    def _lives(self, rank: int) -> bool:
        """Return whether the process of a rank is there, or has not come yet."""
        if not self._lines[rank][_CAME]:
            return True
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, rank)
        except OSError:
            return True
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, rank)
        return False

    def _wait(self, rank: int, line: memoryview) -> None:
        began = looked = now = time.monotonic()
        stillness: Stillness | None = None  # most waits are over before it is needed
        while line[_CALLS] < self._calls:
            self.check()
            if now - began < self._spin:
                os.sched_yield()
            else:
                time.sleep(nap(now - began))
            now = time.monotonic()
            if now - looked < _LOOK:
                continue
            stillness = stillness or Stillness(2 * _LOOK)
            looked, still = now, stillness.look(line[_BEATS])
            lives = self._lives(rank)
            if line[_CALLS] < self._calls and (not lives or still > self.deadline):
                raise self._lose(rank, lives, still)

    def _lose(self, rank: int, lives: bool, still: float) -> RankLost:
        if not lives and self._head[_OVER]:  # before it ended, it named the one that was lost
            return self._ended(self._call())
        self.end(rank)
        if not lives:
            why = "its process has ended"
        elif self._lines[rank][_CAME]:
            calls = self._lines[rank][_CALLS]
            why = f"it has not moved for {still:.0f} s, and made {calls} of {self._calls} calls"
        else:
            why = f"it has not come within {still:.0f} s"
        return RankLost(f"rank {rank} of {self.size} is lost: {why}; rank {self.rank} waits in {self._call()}", rank)

    def _ended(self, call: str) -> RankLost:
        lost = self._head[_LOST] if self._head[_OVER] else -1
        why = f": rank {lost} of {self.size} is lost" if lost >= 0 else ""
        text = f"generation {self.generation} of the ranks is over{why}; rank {self.rank} is in {call}"
        return RankLost(text, lost if lost >= 0 else None)

    def _apart(self, rank: int, what: int) -> RlcoreError:
        nbytes, kind = divmod(what, len(KINDS))
        return RlcoreError(
            f"rank {self.rank} calls {self._call()}, and rank {rank} calls {KINDS[kind]} with {nbytes} bytes in its "
            "place: every rank makes the same calls in the same order; look for a hook that calls the group on one "
            "rank only"
        )

    def _call(self) -> str:
        nbytes, kind = divmod(self._line[_WHAT + self._calls % 2], len(KINDS))
        return f"{KINDS[kind]} with {nbytes} bytes"
