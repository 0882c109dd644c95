"""How much of the step limit has passed, as a part of the observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pydantic import BaseModel

from rlcore.envs import PassThrough
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.flat_leaf import float_dtype
from rlcore_plugin_transforms.modules import Timed

if TYPE_CHECKING:
    from typing import Self

    from rlcore.types import Array, BoolArray


class TimeFeature(PassThrough):
    """Appends the fraction of the episode's step limit that has passed, in [0, 1].

    With a step limit, what an observation is worth depends on the steps that are left; without the time in it, the
    environment is not Markov. Meant for tasks in which the limit is a part of the task.

    Source: Pardo et al. 2018, "Time Limits in Reinforcement Learning", arXiv 1712.00378.
    """

    takes_some_envs = True  # what it carries belongs to the envs, and it leaves batches as they are

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure: the limit is that of the env."""

    def __init__(self, config: Config, context: Context) -> None:
        spec = context.env_spec
        if spec.max_episode_steps is None:
            raise ConfigError(
                f"[transform] time-feature: env {spec.id!r} has no step limit, so there is no fraction of it; set one "
                "(with the gymnasium env: [env] max_episode_steps = N), or leave time-feature out"
            )
        self._limit = spec.max_episode_steps
        self._elapsed: Array | None = None  # [env], steps of the running episodes; replaced, never changed in place

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return the box with one element more."""
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ConfigError(f"[transform] time-feature needs observations in a Box of one dimension, not {space}")
        dtype = _dtype(space.dtype)
        low, high = (np.append(bound, end).astype(dtype) for bound, end in ((space.low, 0), (space.high, 1)))
        return gymnasium.spaces.Box(low, high, dtype=dtype.type)

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations `[env, size + 1]`."""
        if self._elapsed is None or len(self._elapsed) != len(observation):
            self._elapsed = np.zeros(len(observation), dtype=np.int64)
        else:
            self._elapsed = np.where(first, 0, self._elapsed + 1)
        return self._with_time(observation, self._elapsed)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the last observation of an episode, `[size + 1]`; the counters stay as they are."""
        elapsed = 0 if self._elapsed is None else self._elapsed[env_index]
        return self._with_time(observation, np.asarray(elapsed + 1))

    def frozen(self) -> Self:
        """Return a copy that has counted nothing yet, for envs of its own."""
        copied = super().frozen()
        copied._elapsed = None
        return copied

    def memory_module(self) -> Timed:
        """Return the same as a module; its state is the number of steps."""
        return Timed(self._limit)

    def state_dict(self) -> dict[str, Any]:
        """Return the steps of the running episodes."""
        return {"elapsed": self._elapsed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the steps of the running episodes."""
        elapsed = state["elapsed"]
        self._elapsed = None if elapsed is None else np.array(elapsed)

    def forget_episodes(self) -> None:
        """Count from 0: the collector begins new episodes."""
        self._elapsed = None

    def _with_time(self, observation: Array, elapsed: Array) -> Array:
        fraction = np.minimum(elapsed / self._limit, 1.0)
        return np.concatenate((observation, fraction[..., None]), axis=-1, dtype=_dtype(observation.dtype))


def _dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of observations with a fraction among them."""
    given = np.dtype(dtype)
    return given if given.kind == "f" else float_dtype(given)
