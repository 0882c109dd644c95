"""Any observation as one vector: arrays of any shape, dicts of them, numbered choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel

from rlcore.envs import ACTION_MASK, Packed, PassThrough
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.flat_leaf import FlatLeaf
from rlcore_plugin_transforms.modules import Flattened

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray

_VECTOR = "observation"


class Flatten(PassThrough):
    """Returns observations as vectors of floats `[env, number]`, the leaves of a dict side by side in their order.

    Numbered choices become one-hot vectors, as in Gymnasium's `flatten_space`. An `action_mask` stays apart: the
    observations are a dict then, of the vector as `observation` and the mask. The vectors are float32, or float64 where
    a leaf has numbers that float32 would round. It learns nothing and keeps nothing.
    """

    takes_leaves = True

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        self._name = context.name
        self._before: gymnasium.Space[Any] | None = None
        self._after: Packed | None = None  # where there is a mask
        self._leaves: list[FlatLeaf] = []
        self._size = 0
        self._dtype = np.dtype(np.float32)

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the box of the vectors, beside the mask where there is one.

        Raises:
            ConfigError: there is nothing but a mask, or the observation is no array.
        """
        choices = space.choices if isinstance(space, Packed) else ()
        seen = {name: space.held(name) for name in space.leaves} if isinstance(space, Packed) else {"": space}
        flat = {name: leaf for name, leaf in seen.items() if not choices or name != ACTION_MASK}
        if not flat:
            raise ConfigError(f"[[transform]] {self._name!r}: the observations have no leaf but {ACTION_MASK!r}")
        self._before, self._leaves, self._size = space, [], 0
        for name, leaf in flat.items():
            self._leaves.append(FlatLeaf(name, leaf, self._size))
            self._size += self._leaves[-1].size
        self._dtype = np.result_type(*(leaf.dtype for leaf in self._leaves))
        low, high = (np.concatenate([getattr(leaf, end) for leaf in self._leaves]) for end in ("low", "high"))
        box = gymnasium.spaces.Box(low, high, dtype=self._dtype.type)
        self._after = Packed({_VECTOR: box, ACTION_MASK: seen[ACTION_MASK]}, choices) if choices else None
        return box if self._after is None else self._after

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the vectors of every env."""
        return self._flattened(observation)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the vector of the last observation of an episode."""
        result: Array = self._flattened(observation[None])[0]
        return result

    def observation_module(self) -> Flattened:
        """Return the same as a module."""
        before = self._before if isinstance(self._before, Packed) else None
        leaves = [(leaf.name, leaf.choices) for leaf in self._leaves]
        return Flattened(leaves, self._dtype, _VECTOR, before, self._after)

    def _flattened(self, observation: Array) -> Array:
        before = self._before
        flat = np.zeros((len(observation), self._size), dtype=self._dtype)
        for leaf in self._leaves:
            values = before.array(observation, leaf.name) if isinstance(before, Packed) else observation
            leaf.write(flat, values)
        if self._after is None or not isinstance(before, Packed):
            return flat
        return self._after.pack({_VECTOR: flat, ACTION_MASK: before.array(observation, ACTION_MASK)})
