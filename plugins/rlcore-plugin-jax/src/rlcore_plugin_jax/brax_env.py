"""Envs with the interface of Brax and MuJoCo Playground: `reset(key)` and `step(state, action)` return a state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlcore.errors import ConfigError
from rlcore_plugin_jax.single import Moved, SingleEnv
from rlcore_plugin_jax.spaces import box_of


class BraxEnv(SingleEnv):
    """An env of Brax or MuJoCo Playground, whose actions are between -1 and 1.

    Args:
        env: has `reset`, `step` and `action_size`; it begins no episode itself.
        max_episode_steps: steps after which an episode is truncated.

    Raises:
        ConfigError: its states have another form, or it begins episodes itself.
    """

    def __init__(self, env: Any, max_episode_steps: int | None) -> None:
        self._env = env
        self.max_episode_steps = max_episode_steps
        state = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
        missing = [name for name in ("obs", "reward", "done", "info") if not hasattr(state, name)]
        if missing:
            raise ConfigError(
                f"[env] {type(env).__name__}.reset(key) gives a {type(state).__name__} without {', '.join(missing)}; "
                "Brax's interface returns a state that has them"
            )
        if any("first_" in name for name in state.info):
            raise ConfigError(
                f"[env] {type(env).__name__} begins the next episode itself, which hides the last observation of an "
                "episode; make it without automatic resets (in Brax get_environment, or create(auto_reset=False))"
            )
        if not hasattr(state.obs, "shape"):
            raise ConfigError(
                f"[env] {type(env).__name__}: an observation is a {type(state.obs).__name__}; it must be one array"
            )
        self.observation_space = box_of(-np.inf, np.inf, state.obs.shape, state.obs.dtype)
        self.action_space = box_of(-1.0, 1.0, (int(env.action_size),), np.float32)

    def begin(self, key: Any) -> tuple[Any, Any]:
        """Return the first observation of an episode, and its state."""
        state = self._env.reset(key)
        return state.obs, state

    def step(self, key: Any, state: Any, action: Any) -> Moved:
        """Return what a step leads to; its random numbers follow from the state."""
        following = self._env.step(state, action)
        truncated = jnp.asarray(following.info.get("truncation", False), bool)
        return Moved(
            following.obs, following, following.reward, jnp.asarray(following.done, bool) & ~truncated, truncated
        )
