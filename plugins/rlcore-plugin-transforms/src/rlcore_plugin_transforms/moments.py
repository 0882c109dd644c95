"""Mean and standard deviation of everything seen so far, in double precision."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.state import check_array

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import Array, Group


class Moments:
    """Count, mean and sum of squared differences from the mean, merged batch by batch.

    Source: Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances".
    No array is changed in place, so a shallow copy stays as it is. Once tensors were added, mean and squares are
    tensors on their device.

    Of several ranks that train together each goes on from what all of them have seen up to the last `agree`, with what
    came to it since.

    Args:
        group: the ranks that train together; None for one process.
    """

    def __init__(self, group: Group | None = None) -> None:
        self.count = 0
        self.mean: Any = np.zeros(())
        self._squares: Any = np.zeros(())
        self._group = group if group is not None and group.size > 1 else None
        if self._group is not None:
            self._agreed, self._fresh = Moments(), Moments()

    def add(self, values: Array) -> None:
        """Take in `values`, `[sample, *shape]`."""
        added = len(values)
        if not added:
            return
        values = values.astype(np.float64)
        mean = values.mean(0)
        squares = np.square(values - mean).sum(0)
        self._merge(added, mean, squares)
        if self._group is not None:
            self._fresh._merge(added, mean, squares)

    def add_tensors(self, values: Tensor) -> None:
        """Take in `values`, `[sample, *shape]`, without a wait for their device."""
        values = values.double()
        mean = values.mean(0)
        squares = (values - mean).square().sum(0)
        for moments in (self,) if self._group is None else (self, self._fresh):
            moments._move(values)
            moments._merge(len(values), mean, squares)

    def agree(self, shape: Sequence[int] = ()) -> None:
        """Take in what the other ranks have seen since they last agreed; each calls this at the same place.

        Args:
            shape: of a sample.
        """
        if self._group is None:
            return
        fresh = self._fresh.arrays()
        own = [
            np.full(1, fresh.count),
            *(np.broadcast_to(part, shape).ravel() for part in (fresh.mean, fresh._squares)),
        ]
        bits = np.concatenate(own).astype(np.float64).view(np.int64)  # whole numbers are what ranks share
        for numbers in self._group.share(bits.tolist()):
            count, *rest = np.array(numbers, np.int64).view(np.float64)
            mean, squares = np.array(rest).reshape(2, *shape)
            if count:
                self._agreed._merge(int(count), mean, squares)
        self._take(self._agreed)
        self._fresh = Moments()

    def deviation(self, epsilon: float) -> Array:
        """Return `sqrt(variance + epsilon)`; the variance is that of the population, and 1 before the first value."""
        variance = self._squares / self.count if self.count else np.ones(())
        return np.asarray(np.sqrt(variance + epsilon))

    def figures(self, epsilon: float, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and deviation in double precision, on the device of a tensor."""
        self._move(like)
        variance = self._squares / self.count if self.count else self._squares + 1.0
        return self.mean, (variance + epsilon).sqrt()

    def arrays(self) -> Moments:
        """Return the same moments as arrays."""
        if not hasattr(self.mean, "cpu"):
            return self
        copied = copy.copy(self)
        copied.mean, copied._squares = self.mean.cpu().numpy(), self._squares.cpu().numpy()
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return everything."""
        here = self.arrays()
        return {"count": here.count, "mean": np.asarray(here.mean), "squares": np.asarray(here._squares)}

    def load_state_dict(self, state: Mapping[str, Any], shape: Sequence[int] | None = None) -> None:
        """Set everything.

        Args:
            state: from `state_dict`.
            shape: of a sample, where it is known.

        Raises:
            StorageError: samples had another shape.
        """
        if shape is not None and state["count"]:
            check_array("the mean", np.asarray(state["mean"]), shape, "[env], [[transform]]")
        self.count = state["count"]
        self.mean, self._squares = np.array(state["mean"]), np.array(state["squares"])
        if self._group is not None:
            self._fresh = Moments()
            self._agreed._take(self)

    def _merge(self, added: int, mean: Any, squares: Any) -> None:
        """Take in the moments of some values."""
        difference = mean - self.mean
        total = self.count + added
        self._squares = self._squares + squares + difference * difference * (self.count * added / total)
        self.mean = self.mean + difference * (added / total)
        self.count = total

    def _move(self, like: Tensor) -> None:
        """Have tensors on the device of another one."""
        if not hasattr(self.mean, "cpu"):
            double = like.double()
            self.mean, self._squares = (double.new_tensor(part) for part in (self.mean, self._squares))

    def _take(self, other: Moments) -> None:
        self.count, self.mean, self._squares = other.count, other.mean, other._squares
