"""The processes that train together: how many there are, and what they have to agree on.

Whoever decides something that every process must decide alike asks the group: whether a step was finite, how many
minibatches an epoch has, whether to stop, whether an epoch is over, how many frames were collected. One process is
`Alone` and agrees with itself, at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Group(Protocol):
    """The processes, called ranks, that train one model.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
    """

    rank: int
    size: int

    def sum_(self, flat: Tensor) -> None:
        """Replace a flat float32 tensor by its sum over the ranks, in place, with the same bits on every rank.

        Every rank calls this with a tensor of the same length; it returns when all have.
        """
        ...

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank, by rank; every rank calls this with as many numbers."""
        ...


class Alone:
    """A group of one process."""

    rank = 0
    size = 1

    def sum_(self, flat: Tensor) -> None:
        """Do nothing: the sum over one process is what it has."""

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return what this process has."""
        return (numbers,)
