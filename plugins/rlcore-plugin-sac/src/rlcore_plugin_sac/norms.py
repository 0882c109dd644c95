"""Layers that normalise what the critics have between two linear maps: `norm_layer` makes them by name.

A layer takes `[critic, sample, size]` and a function `take`, through which it reads its parameters: that gives them
without gradients, or those of some of the critics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

Norm = Literal["none", "layer"]
Take: TypeAlias = Callable[[Tensor], Tensor]


class BatchedLayerNorm(nn.Module):
    """Layer normalisation (Ba et al., 2016, arXiv 1607.06450), each critic with its own scale and shift.

    Args:
        critics: how many.
        size: of what is normalised.
    """

    def __init__(self, critics: int, size: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(critics, 1, size))
        self.shift = nn.Parameter(torch.zeros(critics, 1, size))

    def forward(self, hidden: Tensor, take: Take) -> Tensor:
        """Return the normalised values, of the same shape."""
        normal = nn.functional.layer_norm(hidden, hidden.shape[-1:])
        return torch.addcmul(take(self.shift), normal, take(self.scale))


def norm_layer(norm: Norm, critics: int, size: int) -> nn.Module | None:
    """Return the layer of a name; None for `none`."""
    return None if norm == "none" else BatchedLayerNorm(critics, size)
