"""Observations that are vectors: what encodes them, and what predicts them."""

from __future__ import annotations

import torch
from rlcore_plugin_mlp.symlog import symexp, symlog
from torch import Tensor, nn

from rlcore_plugin_dreamer.layers import Head, hidden_layers


class VectorEncoder(nn.Module):
    """Layers behind the symlog of a vector.

    Args:
        size: of a vector.
        layers: how many.
        units: of each.
        generator: samples the weights.

    Attributes:
        tokens: size of an encoded observation.
    """

    def __init__(self, size: int, layers: int, units: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = units
        self.hidden = hidden_layers(size, [units] * layers, generator)

    def forward(self, observation: Tensor) -> Tensor:
        """Return tokens `[..., token]` of observations `[..., size]`."""
        dtype = next(self.parameters()).dtype
        return self.hidden(symlog(observation.to(dtype)))  # type: ignore[no-any-return]


class VectorDecoder(nn.Module):
    """Predicts the symlog of a vector from a state.

    Args:
        features: size of the features of a state.
        size: of a vector.
        layers: how many.
        units: of each.
        generator: samples the weights.
    """

    def __init__(self, features: int, size: int, layers: int, units: int, generator: torch.Generator) -> None:
        super().__init__()
        self.head = Head(features, layers, units, size, 1.0, generator)

    def forward(self, deter: Tensor, stoch: Tensor) -> Tensor:
        """Return the predictions `[..., size]` of the two parts of a state."""
        return self.head(torch.cat([deter, stoch], -1))  # type: ignore[no-any-return]

    def loss(self, predicted: Tensor, observation: Tensor) -> Tensor:
        """Return the sum of the squared errors of the symlog, `[...]`."""
        return (predicted - symlog(observation.to(predicted.dtype))).square().sum(-1)

    def observations(self, predicted: Tensor) -> Tensor:
        """Return the observations `[..., size]` that are predicted."""
        return symexp(predicted)

    def compared(self, observation: Tensor) -> Tensor:
        """Return observations `[..., size]` in the form of predicted ones: as they are."""
        return observation.float()
