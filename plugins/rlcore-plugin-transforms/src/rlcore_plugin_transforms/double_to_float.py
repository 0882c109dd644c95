"""Observations in single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel
from torch import nn

from rlcore.envs import PassThrough, box_of
from rlcore.types import Context
from rlcore_plugin_transforms.modules import Single

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


class DoubleToFloat(PassThrough):
    """Returns observations of double precision as float32, and all others as they are.

    Policies and batches of rlcore have single precision in any case; this declares it, for the transforms that follow.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        self._casts = True

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the box in single precision."""
        box = box_of(space, "double-to-float")
        self._casts = box.dtype == np.float64
        if not self._casts:
            return box
        with np.errstate(over="ignore"):  # a bound beyond the range of float32 is none
            low, high = box.low.astype(np.float32), box.high.astype(np.float32)
        return gymnasium.spaces.Box(low, high, dtype=np.float32)

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations in single precision."""
        return _single(observation)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the last observation of an episode in single precision."""
        return _single(observation)

    def observation_module(self) -> nn.Module:
        """Return the same as a module; a program may have wide whole numbers in double precision, which stay so."""
        return Single() if self._casts else nn.Identity()


def _single(observation: Array) -> Array:
    return observation.astype(np.float32) if observation.dtype == np.float64 else observation
