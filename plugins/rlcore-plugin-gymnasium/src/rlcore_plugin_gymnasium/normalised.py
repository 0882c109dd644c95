"""The normalisation of observations as a module of torch, for policies that are exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from rlcore.types import Array


class Normalised(nn.Module):
    """`(observation - mean) * scale` as float32.

    Args:
        mean: float32 `[*shape]`.
        scale: float32 `[*shape]`, the inverse of the standard deviation.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Array, scale: Array) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, observation: Tensor) -> Tensor:
        """Return `[env, *shape]`."""
        return ((observation - self.mean) * self.scale).float()
