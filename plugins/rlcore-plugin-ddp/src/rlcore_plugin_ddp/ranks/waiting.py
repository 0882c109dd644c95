"""A group that knows whether its process waits in it, so that nobody takes a rank that waits for one that hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlcore.errors import RankLost
from rlcore.types import Group

if TYPE_CHECKING:
    from torch import Tensor


class WaitingGroup(Group):
    """Makes the calls of another group.

    Args:
        group: it raises `RankLost` by itself when a rank does not move, so that a call never waits for ever.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        generation: how often ranks were started.
        waits: whether a call is under way.
        waited: seconds in which one was.
    """

    def __init__(self, group: Group) -> None:
        self.rank, self.size, self.generation = group.rank, group.size, group.generation
        self.waits = False
        self.waited: float = 0.0
        self._group = group

    def sum_(self, flat: Tensor) -> None:
        """Replace a flat float32 tensor by its sum over the ranks."""
        with self._waiting():
            self._group.sum_(flat)

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank."""
        with self._waiting():
            return self._group.share(numbers)

    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return what every rank hands over, on rank 0."""
        with self._waiting():
            return self._group.gather(tree, tensors)

    def barrier(self) -> None:
        """Wait until every rank calls this."""
        with self._waiting():
            self._group.barrier()

    def beat(self) -> None:
        """Say that this rank moves."""
        self._group.beat()

    def gone(self) -> RankLost | None:
        """Return the loss that can be known without a call; None where there is none, or the group cannot say it."""
        gone = getattr(self._group, "gone", None)
        return None if gone is None else gone()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.waits, began = True, time.perf_counter()
        try:
            yield
        finally:
            self.waits = False
            self.waited += time.perf_counter() - began
