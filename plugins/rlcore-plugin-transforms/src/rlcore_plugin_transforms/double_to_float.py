"""Observations in single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel

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
        pass

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the box in single precision."""
        box = box_of(space, "double-to-float")
        if box.dtype != np.float64:
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

    def observation_module(self) -> Single:
        """Return the same as a module."""
        return Single()


def _single(observation: Array) -> Array:
    return observation.astype(np.float32) if observation.dtype == np.float64 else observation
