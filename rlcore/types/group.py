"""The processes that train together: how many there are, and what they have to agree on.

Whoever decides something that every process must decide alike asks the group: whether a step was finite, how many
minibatches an epoch has, whether to stop, whether an epoch is over, how many frames were collected. One process is
`Alone` and agrees with itself, at no cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class Group(ABC):
    """The processes, called ranks, that train one model.

    Every rank makes the same calls in the same order; each call returns when all ranks have made it. When one of them
    ends or does not move, the others raise `RankLost`, in this and in every later call.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        generation: how often ranks were started for this run, this time included. The ranks of one never meet those of
            another.
        waited: seconds that this rank waited for the others, over all calls; None where nobody measures it.
    """

    rank: int
    size: int
    generation: int
    waited: float | None = None

    @abstractmethod
    def sum_(self, flat: Tensor) -> None:
        """Replace a flat float32 tensor by its sum over the ranks, in place, with the same bits on every rank.

        Every rank calls this with a tensor of the same length.

        Raises:
            RankLost: a rank is gone or does not move.
        """
        ...

    @abstractmethod
    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank, by rank; every rank calls this with as many numbers of 64 bits.

        Raises:
            RankLost: a rank is gone or does not move.
        """
        ...

    @abstractmethod
    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return on rank 0 what every rank hands over, by rank, which may be of any kind and size; elsewhere nothing.

        Args:
            tree: of what JSON knows, not-a-number and infinity among it; tuples come back as lists.
            tensors: by name; they come back on the CPU, as copies.

        Raises:
            RankLost: a rank is gone or does not move.
        """
        ...

    @abstractmethod
    def barrier(self) -> None:
        """Return when every rank has called this.

        Raises:
            RankLost: a rank is gone or does not move.
        """
        ...

    @abstractmethod
    def beat(self) -> None:
        """Say that this rank moves though it makes no call, so that the others wait longer; from any thread."""
        ...


class Alone(Group):
    """A group of one process."""

    rank = 0
    size = 1
    generation = 1

    def sum_(self, flat: Tensor) -> None:
        """Do nothing: the sum over one process is what it has."""

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return what this process has."""
        return (numbers,)

    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return what this process has."""
        return ((tree, dict(tensors or {})),)

    def barrier(self) -> None:
        """Do nothing: nobody else is waited for."""

    def beat(self) -> None:
        """Do nothing: nobody else waits."""
