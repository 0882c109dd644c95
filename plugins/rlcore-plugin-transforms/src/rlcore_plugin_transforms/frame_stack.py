"""The latest observations of each env as one, so that a policy without memory sees what moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from pydantic import BaseModel, Field

from rlcore.envs import PassThrough, box_of
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.flat_leaf import float_dtype
from rlcore_plugin_transforms.modules import Stacked

if TYPE_CHECKING:
    from typing import Self

    from rlcore.types import Array, BoolArray


class FrameStack(PassThrough):
    """Returns the latest observations, the oldest first; an episode begins with its first observation repeated.

    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning", methods.
    """

    takes_some_envs = True  # what it carries belongs to the envs, and it leaves batches as they are

    class Config(BaseModel, extra="forbid"):
        """What is stacked, and how."""

        frames: int = Field(4, ge=1, description="observations in a stack")
        dimension: Literal["first", "last"] = Field(
            "last", description='"first": stacked along a new first dimension; "last": joined along the last one'
        )

    def __init__(self, config: Config, context: Context) -> None:
        self._frames = config.frames
        self._dimension = config.dimension
        self._shape: tuple[int, ...] = ()  # of one observation
        self._dtype: Any = np.float32
        self._memory: Array | None = None  # [env, frames, *shape]; replaced, never changed in place

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return the box of a whole stack."""
        box = box_of(space, "frame-stack")
        if self._dimension == "last" and not box.shape:
            raise ConfigError(
                "[transform] frame-stack: observations without a dimension have no last one; set dimension = 'first'"
            )
        self._shape, self._dtype = box.shape, box.dtype
        low, high = (self._joined(np.stack([bound] * self._frames), axis=0) for bound in (box.low, box.high))
        return gymnasium.spaces.Box(low, high, dtype=box.dtype)

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the stacks of every env; where an episode begins, of its first observation alone."""
        repeated = np.repeat(observation[:, None], self._frames, axis=1)
        if self._memory is None or len(self._memory) != len(observation):
            self._memory = repeated
        else:
            self._memory = np.concatenate((self._memory[:, 1:], repeated[:, -1:]), axis=1)
            self._memory[first] = repeated[first]
        return self._joined(self._memory, axis=1)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the stack that ends with the last observation of an episode; the memory stays as it is."""
        if self._memory is None:
            return self._joined(np.stack([observation] * self._frames), axis=0)
        return self._joined(np.concatenate((self._memory[env_index, 1:], observation[None])), axis=0)

    def frozen(self) -> Self:
        """Return a copy that remembers nothing yet, for envs of its own."""
        copied = super().frozen()
        copied._memory = None
        return copied

    def memory_module(self) -> Stacked:
        """Return the same as a module; its state is the latest observations."""
        return Stacked(self._frames, self._shape, self._dimension == "last", float_dtype(self._dtype))

    def state_dict(self) -> dict[str, Any]:
        """Return the latest observations of every env."""
        return {"memory": self._memory}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the latest observations of every env."""
        memory = state["memory"]
        self._memory = None if memory is None else np.array(memory)

    def forget_episodes(self) -> None:
        """Forget the latest observations: the collector begins new episodes."""
        self._memory = None

    def _joined(self, stacks: Array, axis: int) -> Array:
        """Return a copy of stacks, whose observations lie along `axis`, in the form of the config."""
        if self._dimension == "first":
            return stacks.copy()
        return np.concatenate(list(np.moveaxis(stacks, axis, 0)), axis=-1)
