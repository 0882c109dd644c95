"""What transforms compute, as modules of torch: the same numbers, for policies that are exported."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rlcore.envs import ACTION_MASK

if TYPE_CHECKING:
    from rlcore.envs import Packed
    from rlcore.types import Array


class Single(nn.Module):
    """Observations of double precision in single precision, all others as they are."""

    def forward(self, observation: Tensor) -> Tensor:
        """Return `[env, *shape]`."""
        return observation.float() if observation.dtype == torch.float64 else observation


class Normalised(nn.Module):
    """`(observation - mean) / deviation` in double precision, clipped, returned in single precision.

    Args:
        mean: `[*shape]`.
        deviation: `[*shape]`.
        clip: the largest absolute value; 0 for no limit.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Array, deviation: Array, clip: float) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))
        self._clip = clip

    def forward(self, observation: Tensor) -> Tensor:
        """Return `[env, *shape]`."""
        normalised = (observation.double() - self.mean) / self.deviation
        return (normalised.clamp(-self._clip, self._clip) if self._clip else normalised).float()


class Selected(nn.Module):
    """The numbers at some places along the last dimension.

    Args:
        indices: the places.
    """

    indices: Tensor

    def __init__(self, indices: list[int]) -> None:
        super().__init__()
        self.register_buffer("indices", torch.tensor(indices))

    def forward(self, observation: Tensor) -> Tensor:
        """Return `[env, *shape]`."""
        return observation.index_select(-1, self.indices)


class Flattened(nn.Module):
    """Arrays of any shape as one vector of floats, numbered choices as one-hot vectors.

    Args:
        leaves: the name of each array, and the first number and the count of each of its choices, if it is numbered.
        dtype: of the vector.
        vector: the leaf that is the vector, where a mask stays beside it.
        before: the space of the rows that come in; None where they are one array.
        after: the space of the rows that go out; None where they are the vector alone.
    """

    def __init__(
        self,
        leaves: list[tuple[str, list[tuple[int, int]]]],
        dtype: np.dtype[Any],
        vector: str,
        before: Packed | None,
        after: Packed | None,
    ) -> None:
        super().__init__()
        self._leaves, self._vector = leaves, vector
        self._dtype = torch.from_numpy(np.empty(0, dtype)).dtype
        self._before, self._after = before, after

    def forward(self, observation: Tensor) -> Tensor:
        """Return vectors `[env, number]`, or rows `[env, words]`."""
        arrays = {"": observation} if self._before is None else self._before.tensors(observation)
        flat = torch.cat([_flat(arrays[name], choices).to(self._dtype) for name, choices in self._leaves], -1)
        if self._after is None:
            return flat
        return self._after.joined({self._vector: flat, ACTION_MASK: arrays[ACTION_MASK]})


class Stacked(nn.Module):
    """The latest observations, the oldest first; an episode begins with its first observation repeated.

    Args:
        frames: observations in a stack.
        shape: of one observation.
        joined: whether they lie along the last dimension, and not along a new first one.
        dtype: of the floats that hold an observation.
    """

    def __init__(self, frames: int, shape: tuple[int, ...], joined: bool, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._frames, self._shape, self._joined = frames, shape, joined
        self._dtype = torch.from_numpy(np.empty(0, dtype)).dtype

    def initial_state(self, num_envs: int) -> Tensor:
        """Return zeros `[env, frames, *shape]`."""
        return torch.zeros(num_envs, self._frames, *self._shape, dtype=self._dtype)

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the stacks, and the latest observations, which are their state."""
        latest = observation.unsqueeze(1)
        going_on = torch.cat([state[:, 1:].to(observation.dtype), latest], 1)
        begins = first.reshape(-1, *(1 for _ in going_on.shape[1:]))
        stack = torch.where(begins, latest.expand(-1, self._frames, *self._shape), going_on)
        return torch.cat(stack.unbind(1), -1) if self._joined else stack, stack.to(self._dtype)


class Timed(nn.Module):
    """Observations with the fraction of the step limit that has passed.

    Args:
        limit: of steps in an episode.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def initial_state(self, num_envs: int) -> Tensor:
        """Return zeros `[env, 1]`."""
        return torch.zeros(num_envs, 1)

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return observations `[env, size + 1]`, and how many steps came before."""
        elapsed = torch.where(first.unsqueeze(-1), 0.0, state + 1)
        fraction = (elapsed.double() / self._limit).clamp(max=1.0)
        holding = torch.float32 if observation.element_size() < 4 else torch.float64
        dtype = observation.dtype if observation.is_floating_point() else holding
        return torch.cat([observation.to(dtype), fraction.to(dtype)], -1), elapsed


class Clipped(nn.Module):
    """Actions clipped to bounds.

    Args:
        low: `[*action]`.
        high: `[*action]`.
    """

    low: Tensor
    high: Tensor

    def __init__(self, low: Array, high: Array) -> None:
        super().__init__()
        self.register_buffer("low", torch.tensor(low))
        self.register_buffer("high", torch.tensor(high))

    def forward(self, action: Tensor) -> Tensor:
        """Return `[env, *action]`."""
        return torch.minimum(torch.maximum(action, self.low), self.high)


class Scaled(Clipped):
    """Actions between two numbers mapped onto bounds; onto the nearest integers where the bounds are integers.

    Args:
        low: `[*action]`.
        high: `[*action]`.
        begin: action at the lower bound.
        end: action at the upper bound.
    """

    def __init__(self, low: Array, high: Array, begin: float, end: float) -> None:
        super().__init__(low, high)
        self._begin, self._end = begin, end

    def forward(self, action: Tensor) -> Tensor:
        """Return `[env, *action]`."""
        fraction = (action - self._begin) / (self._end - self._begin)
        low, high = (bound if bound.is_floating_point() else bound.double() for bound in (self.low, self.high))
        scaled = torch.minimum(torch.maximum(low + fraction * (high - low), low), high)
        return (scaled if self.low.is_floating_point() else scaled.round()).to(self.low.dtype)


def _flat(array: Tensor, choices: list[tuple[int, int]]) -> Tensor:
    """Return numbers `[env, number]`, or one-hot vectors of them."""
    numbers = array.reshape(array.shape[0], prod(array.shape[1:]))
    if not choices:
        return numbers
    each = zip(numbers.long().unbind(-1), choices, strict=True)
    return torch.cat([_one_hot(number, start, count) for number, (start, count) in each], -1)


def _one_hot(number: Tensor, start: int, count: int) -> Tensor:
    places = torch.arange(start, start + count, device=number.device)
    return (number.unsqueeze(-1) == places).float()
