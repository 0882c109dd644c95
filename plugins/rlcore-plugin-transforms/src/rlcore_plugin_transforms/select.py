"""Some of the numbers of an observation, so that a policy has to do without the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel, Field, NonNegativeInt

from rlcore.envs import PassThrough, box_of
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.modules import Selected

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


class Select(PassThrough):
    """Returns the numbers at some places along the last dimension of each observation, in the order that is given.

    CartPole without its velocities, for one, is `indices = [0, 2]`: only a policy with a memory balances it.
    """

    class Config(BaseModel, extra="forbid"):
        """Which numbers."""

        indices: list[NonNegativeInt] = Field(min_length=1, description="places along the last dimension, from 0")

    def __init__(self, config: Config, context: Context) -> None:
        self._indices = config.indices
        self._name = context.name

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the box of those numbers.

        Raises:
            ConfigError: an observation is no array, or does not reach so far.
        """
        box = box_of(space, "select")
        last = box.shape[-1] if box.shape else 0
        if max(self._indices) >= last:
            raise ConfigError(
                f"[[transform]] {self._name!r}: indices = {self._indices} reach beyond the {last} numbers of an "
                f"observation {list(box.shape)}"
            )
        low, high = box.low[..., self._indices], box.high[..., self._indices]
        return gymnasium.spaces.Box(low, high, dtype=box.dtype.type)

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return those numbers of every env."""
        return np.take(observation, self._indices, axis=-1)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return those numbers of the last observation of an episode."""
        return np.take(observation, self._indices, axis=-1)

    def observation_module(self) -> Selected:
        """Return the same as a module."""
        return Selected(self._indices)
