"""Observations with mean 0 and deviation 1, by statistics of random frames taken once before training."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel, Field

from rlcore.context import Context
from rlcore.errors import ConfigError, EnvError

if TYPE_CHECKING:
    import numpy.typing as npt
    from tensordict import TensorDict

    from rlcore.types import Env


class ObservationNorm:
    """Returns `(observation - mean) / deviation` as float32; a deviation of zero counts as one."""

    class Config(BaseModel, extra="forbid"):
        """How the statistics are taken."""

        frames: int = Field(1000, ge=2, description="random frames before training")

    def __init__(self, config: Config, context: Context) -> None:
        self._frames = config.frames
        self._context = context
        self._mean: npt.NDArray[np.float32] = np.zeros(1, dtype=np.float32)
        self._scale: npt.NDArray[np.float32] = np.ones(1, dtype=np.float32)

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return an unbounded box of the same shape."""
        if not isinstance(space, gymnasium.spaces.Box):
            raise ConfigError(f"[transform] observation-norm needs observations in a Box, not {space}")
        return gymnasium.spaces.Box(-np.inf, np.inf, space.shape, np.float32)

    def fit(self, env: Env) -> None:
        """Take the statistics of random actions in `env`.

        Raises:
            EnvError: an observation is not finite.
        """
        env.spec.action_space.seed(self._context.seed("actions") % 2**31)
        env.reset(seed=self._context.seed("env") % 2**31)
        seen = []
        for _ in range(self._frames):
            action = np.stack([env.spec.action_space.sample() for _ in range(env.spec.num_envs)])
            seen.append(np.array(env.step(action).observation))
        frames = np.concatenate(seen).astype(np.float64)
        if not np.isfinite(frames).all():
            raise EnvError(f"env {env.spec.id!r}: an observation of the random frames is not finite")
        deviation = frames.std(0)
        self._mean = frames.mean(0).astype(np.float32)
        self._scale = (1.0 / np.where(deviation < 1e-8, 1.0, deviation)).astype(np.float32)

    def step(self, observation: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """Return normalised observations `[env, *shape]`."""
        return ((observation - self._mean) * self._scale).astype(np.float32, copy=False)

    def final(self, observation: npt.NDArray[Any], env_index: int) -> npt.NDArray[np.float32]:
        """Return the normalised last observation of an episode."""
        return ((observation - self._mean) * self._scale).astype(np.float32, copy=False)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch as it is."""
        return batch

    def frozen(self) -> ObservationNorm:
        """Return a copy with the same statistics."""
        return copy.copy(self)

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return {"mean": self._mean, "scale": self._scale}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics."""
        self._mean, self._scale = np.array(state["mean"]), np.array(state["scale"])
