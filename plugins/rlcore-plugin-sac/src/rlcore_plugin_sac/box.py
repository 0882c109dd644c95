"""The spaces that are served, and actions in the units of the env and scaled to [-1, 1]."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_mlp.spaces import SCALED, for_space
from torch import Tensor

from rlcore.envs import FLATTENED, is_image
from rlcore.errors import ConfigError


def vector_size(space: gymnasium.Space[Any], model: str) -> int:
    """Return the size of an observation that is a vector.

    Args:
        space: of the observations.
        model: its name, for the message.

    Raises:
        ConfigError: the space is no box of one dimension.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(
            f"[model] {model} takes observations in a Box of one dimension, not {space}; the transform 'flatten' makes "
            "one of them; for images take the model actor-critic, with an encoder",
            remedy={} if is_image(space) else FLATTENED,
        )
    return space.shape[0]


def squashed_normal(space: gymnasium.Space[Any], device: torch.device, model: str = "actor-critic") -> TanhNormal:
    """Return the normal distribution squashed to the bounds of a space; its parameters are means and log scales.

    Args:
        space: of the actions.
        device: of the distribution.
        model: its name, for messages.

    Raises:
        ConfigError: the space is no box of floats of one dimension with finite bounds.
    """
    needs = f"[model] {model} needs actions in a Box of floats of one dimension with finite bounds"
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(f"{needs}, not {space}")
    if not np.issubdtype(space.dtype, np.floating):
        raise ConfigError(
            f"{needs}, not {space}; the transform action-scale before it rounds for integer actions",
            remedy=SCALED if np.issubdtype(space.dtype, np.integer) else {},
        )
    if not space.is_bounded("both"):
        raise ConfigError(f"{needs}, not {space}; let a wrapper of the env set bounds that its best actions keep to")
    distribution = for_space(space, device, log_scale=True)
    assert isinstance(distribution, TanhNormal)
    return distribution


class ActionBox:
    """The box of a squashed distribution, and maps between its units and [-1, 1].

    Args:
        distribution: whose samples fill the box.

    Attributes:
        size: number of actions.
        low: lower bounds `[action]`, float32; what the distribution gives at -1.
        high: upper bounds `[action]`, float32.
    """

    def __init__(self, distribution: TanhNormal) -> None:
        self.size = distribution.num_parameters // 2
        infinite = torch.full((self.size,), torch.inf, device=distribution.log_half.device)
        self.low, self.high = distribution.squash(-infinite), distribution.squash(infinite)
        self._middle, self._half = (self.low + self.high) / 2, (self.high - self.low) / 2
        self._is_unit = bool((self.low == -1).all() and (self.high == 1).all())

    def to_unit(self, action: Tensor) -> Tensor:
        """Return actions `[..., action]` scaled to [-1, 1]."""
        return action if self._is_unit else (action - self._middle) / self._half

    def from_unit(self, unit: Tensor) -> Tensor:
        """Return actions `[..., action]` in the env's units, inside the bounds, of those in [-1, 1]."""
        if self._is_unit:
            return unit
        return torch.addcmul(self._middle, unit, self._half).clamp(self.low, self.high)
