"""The running scale of values, by which the objective of the policy prior is divided."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PercentileScale(nn.Module):
    """A running average of the distance between the 5th and the 95th percentile, at least 1.

    Args:
        rate: how far an update moves it.
    """

    value: Tensor

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate
        self.register_buffer("value", torch.ones(()))

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Move the scale towards that of some values `[sample]`; none change nothing."""
        if not values.numel():
            return
        ordered = values.sort().values
        distance = _percentile(ordered, 95) - _percentile(ordered, 5)
        self.value.lerp_(distance.clamp(min=1.0).to(self.value.dtype), self._rate)


def _percentile(ordered: Tensor, percent: int) -> Tensor:
    """Return a percentile of values in their order, with linear interpolation, 0-d."""
    place, part = divmod(percent * (len(ordered) - 1), 100)
    after = min(place + 1, len(ordered) - 1)
    return torch.lerp(ordered[place], ordered[after], part / 100)
