"""Mean and standard deviation of everything seen so far, in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.restore import check_array

if TYPE_CHECKING:
    from rlcore.types import Array


class Moments:
    """Count, mean and sum of squared differences from the mean, merged batch by batch.

    Source: Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances".
    No array is changed in place, so a shallow copy stays as it is.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Array = np.zeros(())
        self._squares: Array = np.zeros(())

    def add(self, values: Array) -> None:
        """Take in `values`, `[sample, *shape]`."""
        added = len(values)
        if not added:
            return
        values = values.astype(np.float64)
        mean = values.mean(0)
        difference = mean - self.mean
        total = self.count + added
        self._squares = (
            self._squares + np.square(values - mean).sum(0) + np.square(difference) * (self.count * added / total)
        )
        self.mean = self.mean + difference * (added / total)
        self.count = total

    def deviation(self, epsilon: float) -> Array:
        """Return `sqrt(variance + epsilon)`; the variance is that of the population, and 1 before the first value."""
        variance = self._squares / self.count if self.count else np.ones(())
        return np.asarray(np.sqrt(variance + epsilon))

    def state_dict(self) -> dict[str, Any]:
        """Return everything."""
        return {"count": self.count, "mean": np.asarray(self.mean), "squares": np.asarray(self._squares)}

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
