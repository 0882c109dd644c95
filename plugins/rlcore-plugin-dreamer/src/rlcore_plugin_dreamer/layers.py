"""Layers of the networks: linear maps, also in blocks, with RMS norms and SiLU between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

EPS: Final = 1e-4
_SPREAD: Final = 1.1368  # a normal distribution cut at two deviations has a deviation of 1 / 1.1368


@torch.no_grad()
def initialise(weight: Tensor, inputs: int, scale: float, generator: torch.Generator) -> None:
    """Sample a weight from a normal distribution of variance `scale^2 / inputs`, cut at two deviations."""
    nn.init.trunc_normal_(weight, 0.0, 1.0, -2.0, 2.0, generator=generator)
    weight.mul_(scale * _SPREAD / math.sqrt(inputs))


def linear(inputs: int, outputs: int, generator: torch.Generator, scale: float = 1.0) -> nn.Linear:
    """Return a linear map with no bias at first; with a scale of 0, it returns zeros at first."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    initialise(layer.weight, inputs, scale, generator)
    nn.init.zeros_(layer.bias)
    return layer


class BlockLinear(nn.Module):
    """A linear map of blocks, each of which sees its own inputs: weight `[block, input, output]`.

    Args:
        blocks: how many.
        inputs: of each.
        outputs: of each.
        generator: samples the weights.
    """

    def __init__(self, blocks: int, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(blocks, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(blocks, 1, outputs))
        initialise(self.weight, blocks * inputs, 1.0, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[row, block * output]` of inputs `[row, block * input]`."""
        blocks = self.weight.shape[0]
        columns = torch.unflatten(inputs, -1, (blocks, -1)).transpose(0, 1)
        return torch.baddbmm(self.bias, columns, self.weight).transpose(0, 1).flatten(1)


class NormedLayer(nn.Module):
    """A linear map, an RMS norm and SiLU.

    Args:
        inputs: how many.
        outputs: how many.
        generator: samples the weights.
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = linear(inputs, outputs, generator)
        self.norm = nn.RMSNorm(outputs, EPS)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[..., output]` of inputs `[..., input]`."""
        return self.activated(self.linear(inputs))

    def activated(self, outputs: Tensor) -> Tensor:
        """Return what the norm and SiLU make of the outputs of the linear map."""
        return functional.silu(self.norm(outputs))


class Head(nn.Module):
    """Hidden layers of one size and a linear map.

    Args:
        inputs: how many.
        layers: hidden layers.
        units: of each.
        outputs: how many.
        scale: of the last weights.
        generator: samples the weights.
    """

    def __init__(
        self, inputs: int, layers: int, units: int, outputs: int, scale: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.hidden = hidden_layers(inputs, [units] * layers, generator)
        self.out = linear(units, outputs, generator, scale)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[..., output]`."""
        return self.out(self.hidden(inputs))  # type: ignore[no-any-return]


def outputs_of(heads: Sequence[Head], inputs: Tensor) -> list[Tensor]:
    """Return the outputs `[..., output]` of heads with the same inputs; their first linear maps are one product."""
    firsts: list[Any] = [head.hidden[0] for head in heads]
    weight, bias = (torch.cat([getattr(first.linear, name) for first in firsts]) for name in ("weight", "bias"))
    parts = torch.split(functional.linear(inputs, weight, bias), [first.linear.out_features for first in firsts], -1)
    hidden = (first.activated(part) for first, part in zip(firsts, parts, strict=True))
    return [head.out(head.hidden[1:](rows)) for head, rows in zip(heads, hidden, strict=True)]


def hidden_layers(inputs: int, sizes: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    """Return hidden layers of these sizes."""
    widths = [inputs, *sizes]
    return nn.Sequential(*(NormedLayer(a, b, generator) for a, b in zip(widths, sizes, strict=False)))
