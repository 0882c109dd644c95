"""The blocks of a network: inverted bottlenecks, plain layers, and steps on the unit sphere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from rlcore_plugin_sac.norms import Take
from torch import Tensor, nn

from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.layers import BatchedMap, BatchNorm, Norm, RMSNorm, Scaler, he_scale, norm_layer, unit

Block = Literal["inverted", "residual", "plain", "spherical"]
_TINY = 1e-8  # so that what the activation leaves is never all zeros, which has no direction


@dataclass(frozen=True)
class Shape:
    """What a network is made of.

    Attributes:
        block: kind of its blocks.
        blocks: how many.
        width: features between two blocks.
        expansion: features inside a block, in widths.
        norm: of each linear map; `spherical` has none.
        norm_momentum: how far a batch moves the running statistics of `batch`.
        last_norm: whether what the head sees is divided by its root mean square.
        shift: `spherical`: a constant beside the inputs, so that their length is not lost.
    """

    block: Block
    blocks: int
    width: int
    expansion: int
    norm: Norm
    norm_momentum: float
    last_norm: bool
    shift: float


class Normed(nn.Module):
    """A linear map, a norm, and ReLU.

    Args:
        copies: how many networks.
        inputs: of each.
        outputs: of each.
        shape: has the norm.
        generator: samples the weights.
        activated: whether ReLU comes last.
    """

    def __init__(
        self, copies: int, inputs: int, outputs: int, shape: Shape, generator: torch.Generator, activated: bool = True
    ) -> None:
        super().__init__()
        self.map = BatchedMap(copies, inputs, outputs, shape.norm == "none", generator)
        self.norm = norm_layer(shape.norm, copies, outputs, shape.norm_momentum)
        self._activated = activated

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs."""
        hidden = self.map(inputs, take)
        if self.norm is not None:
            hidden = self.norm(hidden, take, statistics)
        return hidden.relu() if self._activated else hidden  # type: ignore[no-any-return]


class InvertedBlock(nn.Module):
    """Two layers through a wider one, added to what came in: the inverted residual block of FlashSAC.

    `x + relu(norm(W2 relu(norm(W1 x))))` (Kim et al., 2026, arXiv 2604.04539). Of the kind `residual` the
    sum takes what the second norm gives, without ReLU, as BroNet does (Nauman et al., 2024, arXiv 2405.16158).

    Args:
        copies: how many networks.
        shape: of the network.
        generator: samples the weights.
    """

    def __init__(self, copies: int, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        inner = shape.width * shape.expansion
        self.widen = Normed(copies, shape.width, inner, shape, generator)
        self.narrow = Normed(copies, inner, shape.width, shape, generator, shape.block == "inverted")

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs."""
        change: Tensor = self.narrow(self.widen(inputs, take, statistics), take, statistics)
        return inputs + change


class SphericalBlock(nn.Module):
    """A step on the unit sphere towards what two layers give: `unit(x + a (unit(W2 relu(s W1 x)) - x))`.

    The block of SimbaV2 (Lee et al., 2025, arXiv 2502.15280); `s` and `a` are learnt, for each feature.

    Args:
        copies: how many networks.
        shape: of the network.
        generator: samples the weights.
    """

    def __init__(self, copies: int, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        inner, scale = shape.width * shape.expansion, he_scale(shape.width) / math.sqrt(shape.expansion)
        self.widen = BatchedMap(copies, shape.width, inner, False, generator)
        self.scaler = Scaler(copies, inner, scale, scale)
        self.narrow = BatchedMap(copies, inner, shape.width, False, generator)
        self.pace = Scaler(copies, shape.width, 1 / (shape.blocks + 1), 1 / math.sqrt(shape.width))

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs."""
        hidden = self.scaler(self.widen(inputs, take), take).relu() + _TINY
        goal = unit(self.narrow(hidden, take))
        return unit(inputs + self.pace(goal - inputs, take))


class SphericalEntry(nn.Module):
    """Inputs with a constant beside them to a point of the unit sphere, `unit(s W unit([x, shift]))`.

    The input embedding of SimbaV2 (arXiv 2502.15280).

    Args:
        copies: how many networks.
        inputs: of each.
        shape: of the network.
        generator: samples the weights.
    """

    def __init__(self, copies: int, inputs: int, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        self._shift = shape.shift
        self.map = BatchedMap(copies, inputs + 1, shape.width, False, generator)
        self.scaler = Scaler(copies, shape.width, he_scale(shape.width), he_scale(shape.width))

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs."""
        shifted = unit(nn.functional.pad(inputs, (0, 1), value=self._shift))
        return unit(self.scaler(self.map(shifted, take), take))


class Entry(nn.Module):
    """Inputs, normalised by the batch where the network is, to the features of the first block.

    A linear map for `inverted` blocks (FlashSAC), with norm and ReLU for the others (BroNet, XQC).

    Args:
        copies: how many networks.
        inputs: of each.
        shape: of the network.
        generator: samples the weights.
    """

    def __init__(self, copies: int, inputs: int, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        batch = shape.norm == "batch"
        self.norm = BatchNorm(copies, inputs, shape.norm_momentum) if batch else None
        self.map: nn.Module
        self._linear = shape.block == "inverted"
        if self._linear:
            self.map = BatchedMap(copies, inputs, shape.width, False, generator)
        else:
            self.map = Normed(copies, inputs, shape.width, shape, generator)

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs."""
        if self.norm is not None:
            inputs = self.norm(inputs, take, statistics)
        return self.map(inputs, take) if self._linear else self.map(inputs, take, statistics)  # type: ignore[no-any-return]


class BatchedNetwork(nn.Module):
    """Several networks of blocks in one: an entry, blocks, and a linear head.

    The head of `spherical` blocks has a scaled layer more, as SimbaV2 has it.

    Args:
        copies: how many.
        inputs: of each.
        outputs: of each.
        shape: of each.
        generator: samples the weights.
    """

    def __init__(self, copies: int, inputs: int, outputs: int, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        spherical = shape.block == "spherical"
        self.entry: Any = (SphericalEntry if spherical else Entry)(copies, inputs, shape, generator)
        self.blocks = nn.ModuleList(_block(copies, shape, generator) for _ in range(shape.blocks))
        self.last_norm = RMSNorm(copies, shape.width) if shape.last_norm else None
        self.wide_head = BatchedMap(copies, shape.width, shape.width, False, generator) if spherical else None
        self.scaler = Scaler(copies, shape.width, *(he_scale(shape.width),) * 2) if spherical else None
        self.head = BatchedMap(copies, shape.width, outputs, True, generator)

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return the outputs `[copy, sample, outputs]` of inputs `[copy, sample, inputs]`."""
        hidden = self.entry(inputs, take, statistics)
        for block in self.blocks:
            hidden = block(hidden, take, statistics)
        if self.last_norm is not None:
            hidden = self.last_norm(hidden, take, statistics)
        if self.wide_head is not None and self.scaler is not None:
            hidden = self.scaler(self.wide_head(hidden, take), take)
        return self.head(hidden, take)  # type: ignore[no-any-return]


def _block(copies: int, shape: Shape, generator: torch.Generator) -> nn.Module:
    if shape.block == "spherical":
        return SphericalBlock(copies, shape, generator)
    if shape.block == "plain":
        return Normed(copies, shape.width, shape.width, shape, generator)
    return InvertedBlock(copies, shape, generator)
