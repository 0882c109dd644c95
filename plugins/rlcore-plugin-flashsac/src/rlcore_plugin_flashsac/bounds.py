"""Bounds of parameters, kept after each optimisation step; and the targets, which move once they are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rlcore.learners import TargetUpdater

Bounded = Literal["none", "weights", "all"]
_EPS = 1e-8


@dataclass(frozen=True)
class Bound:
    """Parameters of a layer that are kept within a bound.

    Attributes:
        layer: whose they are; a move to another device may exchange them.
        names: of the parameters.
        within: maps their values to those within the bound.
    """

    layer: nn.Module
    names: tuple[str, ...]
    within: Callable[[Sequence[Tensor]], list[Tensor]]

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """The parameters as they are now."""
        return tuple(getattr(self.layer, name) for name in self.names)


def to_unit(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return weights `[copy, inputs, outputs]` of which those of each output have length 1 (SimbaV2, FlashSAC)."""
    return [weight / torch.linalg.vector_norm(weight, dim=1, keepdim=True).clamp(min=_EPS) for weight in tensors]


def joint_to_root(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return parameters `[copy, 1, features]` that together have the length root of `features` (FlashSAC)."""
    squares = torch.stack([values.square().sum(-1, keepdim=True) for values in tensors]).sum(0)
    factor = math.sqrt(tensors[0].shape[-1]) * (squares + _EPS).rsqrt()
    return [values * factor for values in tensors]


def bounds_of(networks: Iterable[nn.Module], bounded: Bounded) -> list[Bound]:
    """Return the bounds of the layers of some networks.

    Args:
        networks: of such layers.
        bounded: which parameters are: `none`, `weights` of the linear maps, or `all`, those of the norms too.
    """
    layers: list[Any] = [layer for network in networks for layer in network.modules() if hasattr(layer, "bounds")]
    bounds = [bound for layer in layers for bound in layer.bounds()]
    return [bound for bound in bounds if bounded == "all" or (bounded == "weights" and bound.within is to_unit)]


@torch.no_grad()
def keep(bounds: Iterable[Bound]) -> None:
    """Put parameters within their bounds."""
    for bound in bounds:
        for parameter, value in zip(bound.parameters, bound.within(bound.parameters), strict=True):
            parameter.copy_(value)


class BoundedTargets(TargetUpdater):
    """Keeps bounds after each optimisation step, and then moves the targets.

    A compiled update keeps them itself, between its steps and the targets, and says so in `kept`.

    Args:
        pairs: (source, target), as `TargetUpdater` takes them; none for no targets.
        bounds: of the parameters of the sources.
        interval: steps between two moves of the targets.
        tau: how far these go.

    Attributes:
        bounds: as given.
        kept: whether the bounds are kept in this update already.
    """

    def __init__(
        self, pairs: Iterable[tuple[nn.Module, nn.Module]], bounds: list[Bound], interval: int, tau: float
    ) -> None:
        super().__init__(pairs, interval, tau)
        self.bounds = bounds
        self.kept = False

    def step(self) -> None:
        """Keep the bounds, count the step, and move the targets when they are due."""
        if not self.kept:
            keep(self.bounds)
        self.kept = False
        super().step()
