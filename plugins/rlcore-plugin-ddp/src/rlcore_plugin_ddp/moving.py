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
# of several that are silent, those that live are slow to see it: so long more they have to say so
_SLOW: Final = 2.0
_LOOK: Final = 0.02
# what a rank says in place of its call once it has given another up
_LOST: Final = "lost"


class Word(NamedTuple):
    """What a rank says of itself.

    Attributes:
        calls: that it has begun.
        beats: how often it said that it moves.
        call: the latest; or which rank it has given up.
    """

    calls: int
    beats: int
    call: str


class Moves:
    """What the ranks say of themselves: their calls so far, the call that they are in, and that they move.

    A rank waits for those that made fewer calls than itself. If one of these says nothing new for the deadline, it is
    lost, and whoever finds that out says so.

    Args:
        store: a `torch.distributed.Store`.
        rank: number of this process, from 0.
        size: how many there are.
        generation: of the ranks.
        deadline: seconds without a new word.
    """

    def __init__(self, store: Any, rank: int, size: int, generation: int, deadline: float) -> None:
        self._store = store
        self._rank, self._size = rank, size
        self._prefix = f"rlcore/{generation}/moves/"
        self._deadline = deadline
        self._every = min(max(deadline * _SAYING, _LEAST), _MOST)
        self._lock = threading.Lock()
        self._word = Word(0, 0, "join")
        self._lost: RankLost | None = None
        self._said = 0.0
        self._say()

    def begin(self, call: str) -> None:
        """Count a call.

        Args:
            call: what it is, the same on every rank.

        Raises:
            RankLost: a rank was lost before.
        """
        if self._lost is not None:
            raise RankLost(str(self._lost), self._lost.rank)
        self._word = Word(self._word.calls + 1, self._word.beats, call)

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
            self._say()
            earlier, stillness = self._heard(), Stillness(2 * _LOOK)
            while True:
                heard = self._heard()
                waited = stillness.look("")  # a time in which this process was slow itself does not count
                if (error := self._error_in(heard)) is not None:
                    return self._give_up(error)
                silent = [r for r, word in enumerate(heard) if word.calls < self._word.calls and word == earlier[r]]
                if not silent or waited > (_SETTLING if len(silent) == 1 else _SETTLING + _SLOW):
                    break
                time.sleep(_LOOK)
        except RuntimeError as error:
            return self._give_up(RankLost(f"the store of the ranks is gone: {error}; {why}"))
        lost = silent[0] if len(silent) == 1 else None
        who = "a rank" if lost is None else f"rank {lost}"
        return self._give_up(
            RankLost(f"{who} of {self._size} is lost; rank {self._rank} is in {self._word.call}: {why}", lost)
        )

    def _error_in(self, heard: list[Word]) -> RlcoreError | None:
        """Return the error that what the others say leaves no doubt of."""
        for rank, word in enumerate(heard):
            kind, _, number = word.call.partition(" ")
            if kind == _LOST:
                lost = int(number) if number else None
                who = "a rank" if lost is None else f"rank {lost}"
                return RankLost(f"{who} of {self._size} is lost, as rank {rank} says", lost)
            if word.calls == self._word.calls and word.call != self._word.call:
                return RlcoreError(
                    f"rank {self._rank} calls {self._word.call}, and rank {rank} calls {word.call} in its place: every "
                    "rank makes the same calls in the same order; look for a hook that calls the group on one rank only"
                )
        return None

    def _give_up(self, error: RlcoreError) -> RlcoreError:
        """Tell the others of a rank that is lost, and return the error."""
        if isinstance(error, RankLost):
            self._lost = error
            self._word = self._word._replace(call=_LOST if error.rank is None else f"{_LOST} {error.rank}")
            with suppress(RuntimeError):
                self._say()
        return error

    def _say(self, beats: int = 0) -> None:
        self._said = time.monotonic()
        with self._lock:
            word = self._word = self._word._replace(beats=self._word.beats + beats)
            self._store.set(f"{self._prefix}{self._rank}", f"{word.calls} {word.beats} {word.call}")

    def _heard(self) -> list[Word]:
        """Return the latest word of every rank."""
        with self._lock:
            words = self._store.multi_get([f"{self._prefix}{rank}" for rank in range(self._size)])
        parts = [word.decode().split(" ", 2) for word in words]
        return [Word(int(calls), int(beats), call) for calls, beats, call in parts]


class Watch:
    """Looks, during one call, whether those that this rank waits for move.

    Args:
        moves: of the ranks.
    """

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._next = time.monotonic() + moves._every
        self._stillness: list[Stillness] = []

    def look(self) -> None:
        """Look, if it is time to.

        Raises:
            RankLost: a rank has not moved for the deadline, or another has found that; or all have come, and the call
                does not end.
            RlcoreError: one makes another call than this rank.
        """
        now, moves = time.monotonic(), self._moves
        if now < self._next:
            return
        self._next = now + moves._every
        try:
            if not self._stillness:
                moves._say()
            heard = moves._heard()
        except RuntimeError as error:
            raise moves.broken(str(error)) from error
        self._stillness = self._stillness or [Stillness(2 * moves._every) for _ in heard]
        still = [stillness.look(word) for stillness, word in zip(self._stillness, heard, strict=True)]
        if (ending := moves._error_in(heard) or self._silent(heard, still)) is not None:
            raise moves._give_up(ending)

    def _silent(self, heard: list[Word], still: list[float]) -> RankLost | None:
        """Return the error for a rank that has said nothing new for the deadline, or for all of them."""
        moves = self._moves
        here = moves._word
        for rank, (word, seconds) in enumerate(zip(heard, still, strict=True)):
            if word.calls < here.calls and seconds > moves._deadline:
                return RankLost(
                    f"rank {rank} of {moves._size} is lost: it has not moved for {seconds:.0f} s, and made "
                    f"{word.calls} of {here.calls} calls; rank {moves._rank} waits in {here.call}",
                    rank,
                )
        if min(still) > moves._deadline:
            return RankLost(f"all ranks are in {here.call}, and it does not end; rank {moves._rank} gives it up")
        return None
