"""Observations with mean 0 and standard deviation 1, by statistics of random frames taken once before training."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, Field

from rlcore.envs import random_actions
from rlcore.errors import ConfigError, EnvError
from rlcore.state import check_array
from rlcore.types import Context
from rlcore_plugin_transforms.normalising import Normalising

if TYPE_CHECKING:
    from rlcore.types import Array, Env


class ObservationNorm(Normalising):
    """Returns `(observation - mean) / std` as float32; a standard deviation of zero counts as one."""

    class Config(BaseModel, extra="forbid"):
        """How the statistics are taken."""

        frames: int = Field(1000, ge=2, description="random frames before training")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__("observation-norm")
        self._frames = config.frames
        self._context = context
        self._mean: Array = np.zeros(1)
        self._scale: Array = np.ones(1)  # the inverse of the deviation, as it is saved

    def fit(self, env: Env) -> None:
        """Take the statistics of random actions in `env`.

        Raises:
            EnvError: an observation is not finite.
        """
        self._take_statistics(env, self._frames)

    def init_stats(self, num_iter: int) -> None:
        """Take the statistics again, of `num_iter` random frames of an env as the transforms before this one leave it.

        Transforms after this one keep the statistics that they took before.

        Raises:
            ConfigError: fewer than two frames.
            EnvError: an observation is not finite.
        """
        if num_iter < 2:
            raise ConfigError(f"init_stats: num_iter = {num_iter}; statistics need at least two frames")
        env = self._context.make_fitting_env(self, self._context.name)
        try:
            self._take_statistics(env, num_iter)
        finally:
            env.close()

    @property
    def loc(self) -> Array:
        """The mean that is subtracted, float64 `[*shape]`."""
        return self._mean

    @property
    def scale(self) -> Array:
        """The standard deviation that differences are divided by, float64 `[*shape]`."""
        return 1.0 / self._scale

    def statistics(self) -> tuple[Array, Array]:
        """Return mean and deviation of the random frames."""
        return self._mean, self.scale

    def _take_statistics(self, env: Env, count: int) -> None:
        self.check_precision(env.spec.id, env.reset(seed=self._context.seed("env") % 2**31))
        plan = islice(random_actions(env.spec, self._context.seed("actions") % 2**31), count)
        frames = np.concatenate([np.array(env.step(action).observation) for action in plan]).astype(np.float64)
        if not np.isfinite(frames).all():
            raise EnvError(f"env {env.spec.id!r}: an observation of the random frames is not finite")
        deviation = frames.std(0)
        self._mean, self._scale = frames.mean(0), 1.0 / np.where(deviation < 1e-8, 1.0, deviation)
        self._there = None

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return {"mean": self._mean, "scale": self._scale}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics, of whatever precision they were saved in.

        Raises:
            StorageError: they are of observations of another shape.
        """
        if self._shape is not None:
            check_array("the mean", np.asarray(state["mean"]), self._shape, "[env], [[transform]]")
        self._mean, self._scale = (np.array(state[name], dtype=np.float64) for name in ("mean", "scale"))
        self._there = None
