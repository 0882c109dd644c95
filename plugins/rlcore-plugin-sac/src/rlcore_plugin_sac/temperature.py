"""The temperature of SAC, as a part of the model with one parameter."""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn

# float32 overflows at exp(88); a temperature of e^20 leaves nothing of any value long before
LARGEST_LOG: Final = 20.0


class Temperature(nn.Module):
    """The weight of the entropy, above zero: `exp(log_alpha)`, where the logarithm counts as at most 20.

    Args:
        initial: the temperature in the beginning.
    """

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((), math.log(initial)))

    def forward(self) -> Tensor:
        """Return the temperature, a 0-d tensor."""
        return self.log_alpha.clamp(max=LARGEST_LOG).exp()
