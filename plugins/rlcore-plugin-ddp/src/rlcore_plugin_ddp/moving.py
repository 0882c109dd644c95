"""How ranks of several hosts see that another moves, or does not: each says so in the store, now and then."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rlcore.errors import RankLost, RlcoreError
from rlcore.process import Stillness

# of the deadline: how often a rank says that it moves, and how long it waits before it looks at what others say
_SAYING: Final = 0.1
# seconds, whatever the deadline
_LEAST, _MOST = 0.05, 5.0
# seconds: in which those that live say where they are, after a connection broke; between two looks at that
_SETTLING: Final = 1.0
# of several that are silent, those that live are slow to see it: so long more they have to say so, at least
_SLOW: Final = 2.0
_LOOK: Final = 0.02
# what a rank says in place of its call once it has found that another is lost
_LOST: Final = "lost"


class Word(NamedTuple):
    """What a rank says of itself.

    Attributes:
        calls: that it has begun.
        beats: how often it said that it moves, between two calls.
        looks: how often it looked, during a call, at what the others say.
        call: the latest; or which rank is lost, as it found.
    """

    calls: int
    beats: int
    looks: int
    call: str


class Moves:
    """What the ranks say of themselves: their calls so far, the call that they are in, and that they move.

    A rank that waits in a call says so again and again. One that says nothing new for the deadline is lost, be it
    between two calls or in the call in which the others wait; whoever finds that out tells the others.

    Args:
        store: a `torch.distributed.Store`.
        rank: number of this process, from 0.
        size: how many there are.
        generation: of the ranks.
        deadline: seconds without a new word.

    Attributes:
        lost: the loss that this rank knows of; after a connection broke it may not name the rank yet.
    """

    def __init__(self, store: Any, rank: int, size: int, generation: int, deadline: float) -> None:
        self.lost: RankLost | None = None
        self._store = store
        self._rank, self._size = rank, size
        self._prefix = f"rlcore/{generation}/moves/"
        self._deadline = deadline
        self._every = min(max(deadline * _SAYING, _LEAST), _MOST)
        self._lock = threading.Lock()
        # whoever makes the calls counts them, and nobody else, so that a beat from another thread takes none back
        self._calls = (0, "join")
        self._beats = self._looks = 0
        self._said = 0.0
        self._say()

    def begin(self, call: str) -> None:
        """Count a call.

        Args:
            call: what it is, the same on every rank.

        Raises:
            RankLost: a rank was lost before.
        """
        if self.lost is not None:
            raise RankLost(str(self.lost), self.lost.rank)
        self._calls = (self._calls[0] + 1, call)

    def beat(self) -> None:
        """Say that this rank moves, if it is time to; from any thread."""
        if time.monotonic() < self._said + self._every:
            return
        with suppress(RuntimeError):  # without a store, whoever waits finds that out
            self._say(beats=1)

    def watch(self) -> Watch:
        """Return what watches the others during one call."""
        return Watch(self)

    def broken(self, why: str) -> RlcoreError:
        """Return the error for a connection that broke: those that live say where they are, and one that does not died.

        Args:
            why: what was seen.
        """
        try:
            return self._found(why)
        except RuntimeError as error:
            return self._tell(RankLost(f"the store of the ranks is gone: {error}; {why}"))

    def _found(self, why: str) -> RlcoreError:
        """Return the error for a connection that broke, once those that live have said something new."""
        self._say(looks=1)
        earlier, stillness = self._heard(), Stillness(2 * _LOOK)
        silent = [rank for rank in range(self._size) if rank != self._rank]
        self.lost = self._loss(silent, why)
        while True:
            heard = self._heard()
            waited = stillness.look("")  # a time in which this process was slow itself does not count
            if (error := self._error_in(heard)) is not None:
                return error
            silent = [rank for rank in silent if heard[rank] == earlier[rank]]
            self.lost = self._loss(silent, why)
            slow = 0.0 if len(silent) == 1 else max(_SLOW, 2 * self._every)
            if not silent or waited > _SETTLING + slow:
                return self._tell(self.lost)
            time.sleep(_LOOK)
            self._say(looks=1)

    def _loss(self, silent: list[int], why: str) -> RankLost:
        """Return the error for a connection that broke, which names the rank if only one says nothing."""
        lost = silent[0] if len(silent) == 1 else None
        who = "a rank" if lost is None else f"rank {lost}"
        return RankLost(f"{who} of {self._size} is lost; rank {self._rank} is in {self._calls[1]}: {why}", lost)

    def _error_in(self, heard: list[Word]) -> RlcoreError | None:
        """Return the error that what the others say leaves no doubt of."""
        calls, call = self._calls
        for rank, word in enumerate(heard):
            kind, number, text = (*word.call.split(" ", 2), "", "")[:3]
            if kind == _LOST:
                self.lost = RankLost(f"{text}, as rank {rank} says", None if int(number) < 0 else int(number))
                return self.lost
            if word.calls == calls and word.call != call:
                return RlcoreError(
                    f"rank {self._rank} calls {call}, and rank {rank} calls {word.call} in its place: every "
                    "rank makes the same calls in the same order; look for a hook that calls the group on one rank only"
                )
        return None

    def _tell(self, lost: RankLost) -> RankLost:
        """Tell the others of a rank that is lost, and return the error."""
        self.lost = lost
        self._calls = (self._calls[0], f"{_LOST} {-1 if lost.rank is None else lost.rank} {lost}")
        with suppress(RuntimeError):
            self._say()
        return lost

    def _say(self, beats: int = 0, looks: int = 0) -> None:
        self._said = time.monotonic()
        with self._lock:
            self._beats += beats
            self._looks += looks
            calls, call = self._calls
            self._store.set(f"{self._prefix}{self._rank}", f"{calls} {self._beats} {self._looks} {call}")

    def _heard(self) -> list[Word]:
        """Return the latest word of every rank."""
        with self._lock:
            words = self._store.multi_get([f"{self._prefix}{rank}" for rank in range(self._size)])
        parts = [word.decode().split(" ", 3) for word in words]
        return [Word(int(calls), int(beats), int(looks), call) for calls, beats, looks, call in parts]


class Watch:
    """Looks, during one call, whether the ranks move.

    Args:
        moves: of the ranks.
    """

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._next = time.monotonic() + moves._every
        # of each rank: for how long it says nothing, and for how long it does no more than wait
        self._stillness: list[tuple[Stillness, Stillness]] = []  # most calls are over before it is needed

    def look(self) -> None:
        """Look, if it is time to, and say so.

        Raises:
            RankLost: a rank has said nothing for the deadline, or another has found that; or all wait, and the call
                does not end.
            RlcoreError: one makes another call than this rank.
        """
        now, moves = time.monotonic(), self._moves
        if now < self._next:
            return
        self._next = now + moves._every
        try:
            moves._say(looks=1)
            heard = moves._heard()
        except RuntimeError as error:
            raise moves.broken(str(error)) from error
        if (error_said := moves._error_in(heard)) is not None:
            raise error_said
        if (lost := self._loss_in(heard)) is not None:
            raise moves._tell(lost)

    def _loss_in(self, heard: list[Word]) -> RankLost | None:
        """Return the error for a rank that has said nothing new for the deadline, or for all that only wait."""
        moves = self._moves
        calls, call = moves._calls
        most = 2 * moves._every
        self._stillness = self._stillness or [(Stillness(most), Stillness(most)) for _ in heard]
        silent = [silence.look(word) for (silence, _), word in zip(self._stillness, heard, strict=True)]
        still = [stillness.look(word[:2]) for (_, stillness), word in zip(self._stillness, heard, strict=True)]
        for rank, seconds in enumerate(silent):
            if seconds > moves._deadline:
                return RankLost(
                    f"rank {rank} of {moves._size} is lost: it has not moved for {seconds:.0f} s, and made "
                    f"{heard[rank].calls} of {calls} calls; rank {moves._rank} waits in {call}",
                    rank,
                )
        if min(still) > moves._deadline:
            return RankLost(f"all ranks are in {call}, and it does not end; rank {moves._rank} gives it up")
        return None
