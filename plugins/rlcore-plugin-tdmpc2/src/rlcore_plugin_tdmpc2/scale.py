"""The running scale of values, by which the objective of the policy prior is divided."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PercentileScale(nn.Module):
    """A running average of the distance between the 5th and the 95th percentile, at least 1.

    Args:
        rate: how far an update moves it.

    Attributes:
        state: the scale, and a count of its updates, float32 `[2]`. With the count every update changes the buffer, by
            which a learner finds out that it moves, also where the scale stays at 1.
    """

    state: Tensor

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate
        self.register_buffer("state", torch.tensor([1.0, 0.0]))

    @property
    def value(self) -> Tensor:
        """The scale, 0-d, a copy."""
        return self.state[0].clone()

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Move the scale towards that of some values `[sample]`; none change nothing."""
        if not values.numel():
            return
        ordered = values.sort().values
        distance = _percentile(ordered, 95) - _percentile(ordered, 5)
        scale, updates = self.state.unbind()
        moved = torch.lerp(scale, distance.clamp(min=1.0).to(scale.dtype), self._rate)
        self.state.copy_(torch.stack([moved, updates + 1]))


def _percentile(ordered: Tensor, percent: int) -> Tensor:
    """Return a percentile of values in their order, with linear interpolation, 0-d."""
    place, part = divmod(percent * (len(ordered) - 1), 100)
    after = min(place + 1, len(ordered) - 1)
    return torch.lerp(ordered[place], ordered[after], part / 100)
