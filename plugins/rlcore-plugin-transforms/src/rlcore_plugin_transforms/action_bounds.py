"""Actions between a policy and the bounds of an env: clipped, or scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel, Field, model_validator

from rlcore.envs import PassThrough
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.modules import Clipped, Scaled

if TYPE_CHECKING:
    from typing import Self

    from rlcore.types import Array, Env


class BoundedActions(PassThrough):
    """Base of transforms that need the bounds of the env's actions; they are taken when it is fitted."""

    name: str

    def __init__(self) -> None:
        self._low: Array = np.zeros(0)
        self._high: Array = np.zeros(0)

    def fit(self, env: Env) -> None:
        """Take the bounds.

        Raises:
            ConfigError: actions are not in a Box with bounds on all sides.
        """
        space = self._box(env.spec.action_space)
        if not space.is_bounded("both"):
            raise ConfigError(f"[transform] {self.name} needs actions with bounds, not {space}; leave it out")
        self._low, self._high = space.low, space.high

    def _box(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        if not isinstance(space, gymnasium.spaces.Box):
            raise ConfigError(f"[transform] {self.name} needs actions in a Box, not {space}; leave it out")
        return space


class ActionClip(BoundedActions):
    """Clips actions to the bounds of the env; the policy takes actions without bounds.

    The batch holds what the policy chose, so that its log-probability is that of the action.
    """

    name = "action-clip"

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure: the bounds are those of the env."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return the box without bounds."""
        box = self._box(space)
        return gymnasium.spaces.Box(-np.inf, np.inf, box.shape, dtype=np.dtype(box.dtype).type)

    def action(self, action: Array) -> Array:
        """Return the clipped actions `[env, *shape]`."""
        return np.clip(action, self._low, self._high)

    def action_module(self) -> Clipped:
        """Return the same as a module."""
        return Clipped(self._low, self._high)


class ActionScale(BoundedActions):
    """Maps actions between `low` and `high` onto the bounds of the env, the same in every dimension.

    An env that takes integers gets the nearest ones; the policy takes floats all the same.
    """

    name = "action-scale"

    class Config(BaseModel, extra="forbid"):
        """The bounds of the policy's actions."""

        low: float = Field(-1.0, allow_inf_nan=False, description="action of the policy at the env's lower bound")
        high: float = Field(1.0, allow_inf_nan=False, description="action of the policy at the env's upper bound")

        @model_validator(mode="after")
        def _in_order(self) -> Self:
            if self.low >= self.high:
                raise ValueError(f"low = {self.low} must be less than high = {self.high}")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        self._from, self._to = config.low, config.high

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return the box of floats from `low` to `high`."""
        box = self._box(space)
        dtype = np.dtype(box.dtype)
        return gymnasium.spaces.Box(
            self._from, self._to, box.shape, dtype=dtype.type if dtype.kind == "f" else np.float32
        )

    def action(self, action: Array) -> Array:
        """Return the scaled actions `[env, *shape]`; those beyond `low` and `high` are clipped."""
        fraction = (action - self._from) / (self._to - self._from)
        scaled: Array = np.clip(self._low + fraction * (self._high - self._low), self._low, self._high)
        if self._low.dtype.kind != "f":
            scaled = np.rint(scaled)
        return scaled.astype(self._low.dtype, copy=False)

    def action_module(self) -> Scaled:
        """Return the same as a module."""
        return Scaled(self._low, self._high, self._from, self._to)
