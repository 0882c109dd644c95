"""How ranks of several hosts see that another moves, or does not: each says so in the store, now and then."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Final

from rlcore.errors import RankLost, RlcoreError

# of the deadline: how often a rank says that it moves, and how long it waits before it looks at what others say
_SAYING: Final = 0.1
# seconds, whatever the deadline
_LEAST, _MOST = 0.05, 5.0


class Moves:
    """What the ranks say of themselves: their calls so far, the call that they are in, and that they move.

    A rank waits for those that made fewer calls than itself. If one of these says nothing new for the deadline, it is
    lost. If all have come, and to the same call, then something between them is broken.

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
        self._calls, self._call, self._beats = 0, "", 0
        self._said = 0.0
        self._say()

    def begin(self, call: str) -> None:
        """Count a call.

        Args:
            call: what it is, the same on every rank.
        """
        self._calls += 1
        self._call = call

    def beat(self) -> None:
        """Say that this rank moves, if it is time to; from any thread."""
        if time.monotonic() < self._said + self._every:
            return
        self._beats += 1
        with suppress(RuntimeError):  # without a store, whoever waits finds that out
            self._say()

    def watch(self) -> Watch:
        """Return what watches the others during one call."""
        return Watch(self)

    def _say(self) -> None:
        self._said = time.monotonic()
        with self._lock:
            self._store.set(f"{self._prefix}{self._rank}", f"{self._calls} {self._beats} {self._call}")

    def _heard(self) -> list[tuple[int, int, str]]:
        """Return calls, beats and call of every rank."""
        with self._lock:
            words = self._store.multi_get([f"{self._prefix}{rank}" for rank in range(self._size)])
        found = []
        for word in words:
            calls, beats, call = word.decode().split(" ", 2)
            found.append((int(calls), int(beats), call))
        return found


class Watch:
    """Looks, during one call, whether those that this rank waits for move.

    Args:
        moves: of the ranks.
    """

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._next = time.monotonic() + moves._every
        self._heard: list[tuple[int, int, str]] = []
        self._since: list[float] = []

    def look(self) -> None:
        """Look, if it is time to.

        Raises:
            RankLost: a rank has not moved for the deadline; or all have come, and the call does not end.
            RlcoreError: one makes another call than this rank.
        """
        now, moves = time.monotonic(), self._moves
        if now < self._next:
            return
        self._next = now + moves._every
        try:
            if not self._heard:
                moves._say()
            heard = moves._heard()
        except RuntimeError as error:
            raise RankLost(
                f"the store of the ranks is gone; rank {moves._rank} is in {moves._call}: {error}"
            ) from error
        if not self._heard:
            self._heard, self._since = heard, [now] * len(heard)
        self._since = [
            since if before == after else now
            for since, before, after in zip(self._since, self._heard, heard, strict=True)
        ]
        self._heard = heard
        self._judge(now)

    def _judge(self, now: float) -> None:
        moves = self._moves
        for rank, (calls, _, call) in enumerate(self._heard):
            still = now - self._since[rank]
            if calls == moves._calls and call != moves._call:
                raise RlcoreError(
                    f"rank {moves._rank} calls {moves._call}, and rank {rank} calls {call} in its place: every rank "
                    "makes the same calls in the same order; look for a hook that calls the group on one rank only"
                )
            if calls < moves._calls and still > moves._deadline:
                raise RankLost(
                    f"rank {rank} of {moves._size} is lost: it has not moved for {still:.0f} s, and made {calls} of "
                    f"{moves._calls} calls; rank {moves._rank} waits in {moves._call}",
                    rank,
                )
        if now - max(self._since) > moves._deadline:
            raise RankLost(f"all ranks are in {moves._call}, and it does not end; rank {moves._rank} gives it up")
