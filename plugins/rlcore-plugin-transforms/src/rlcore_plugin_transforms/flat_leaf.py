"""One array among the numbers of a vector: numbered choices as one-hot vectors, others as they are."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import Array


class FlatLeaf:
    """One array among the numbers of a vector: where it goes, and its bounds there.

    Args:
        name: of the leaf; empty for an observation that is one array.
        space: of it.
        begin: its place in the vector.

    Attributes:
        name: the same.
        size: how many numbers of the vector it takes: as many as there are choices, where it is a choice.
        choices: the first number of each numbered choice, and how many numbers it has; none where it is no choice.
        dtype: of its numbers in a vector: single precision where that holds them, else double.
        low: the least values, `[size]`, of that dtype.
        high: the largest values, `[size]`, of that dtype.
    """

    def __init__(self, name: str, space: gymnasium.Space[Any], begin: int) -> None:
        self.name = name
        self._begin = begin
        self.choices: list[tuple[int, int]] = []
        self.dtype = np.dtype(np.float32)
        self._firsts: Array | None = None  # place of the first number of each choice, less that number
        if isinstance(space, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete):
            counts = np.ravel(space.n if isinstance(space, gymnasium.spaces.Discrete) else space.nvec).astype(np.int64)
            self._firsts = begin + np.cumsum([0, *counts[:-1]]) - np.ravel(space.start)
            self.size = int(counts.sum())
            self.choices = list(zip(np.ravel(space.start).tolist(), counts.tolist(), strict=True))
        else:
            self.size = prod(space.shape or ())
            self.dtype = float_dtype(space.dtype)
        bounds = gymnasium.spaces.flatten_space(space)
        assert isinstance(bounds, gymnasium.spaces.Box)
        with np.errstate(over="ignore"):  # a bound beyond the range of float32 is none
            self.low, self.high = bounds.low.astype(self.dtype), bounds.high.astype(self.dtype)

    def write(self, flat: Array, values: Array) -> None:
        """Write values `[env, *shape]` into their place of vectors `[env, size]`."""
        numbers = values.reshape(len(flat), prod(values.shape[1:]))
        if self._firsts is None:
            flat[:, self._begin : self._begin + self.size] = numbers
        else:
            flat[np.arange(len(flat))[:, None], numbers.astype(np.int64) + self._firsts] = 1.0

    def tensor(self, values: Tensor) -> Tensor:
        """Return what `write` makes of values `[env, *shape]`, `[env, size]`, float32."""
        numbers = values.flatten(1) if values.dim() > 1 else values.unsqueeze(1)
        if self._firsts is None:
            return numbers.float()
        places = zip(numbers.unbind(1), self.choices, strict=True)
        chosen = [
            number.unsqueeze(1) == torch.arange(first, first + count, device=values.device)
            for number, (first, count) in places
        ]
        return torch.cat(chosen, 1).float()


def float_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the floats that hold the numbers of a dtype: single precision, or double where that would round them."""
    return np.result_type(np.float32, dtype)
