"""What transforms compute, as modules of torch: the same numbers, for policies that are exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
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
