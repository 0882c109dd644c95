"""Envs with gymnax's interface: `reset_env(key, params)` and `step_env(key, state, action, params)`."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import jax.numpy as jnp

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_jax.single import Moved, SingleEnv
from rlcore_plugin_jax.spaces import space_of

# under these names parameters have the limit of an episode
_LIMITS: Final = ("max_steps_in_episode", "max_timesteps")
_NEVER: Final = 2**30


def registered(env_id: str, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return an env of gymnax, and its parameters.

    Raises:
        ConfigError: gymnax is not installed, or knows no such env.
    """
    try:
        import gymnax
    except ImportError as error:
        raise ConfigError(
            f"[env] id = {env_id!r} is looked for in gymnax, which is not installed: {error}; pip install "
            "'rlcore[jax]', or name what makes an env of your own, 'module:make'"
        ) from error
    known = gymnax.registered_envs
    if env_id not in known:
        raise ConfigError(
            f"[env] id = {env_id!r}: gymnax has no such env{did_you_mean(env_id, known)}; there are {', '.join(known)}"
        )
    made: tuple[Any, Any] = gymnax.make(env_id, **kwargs)
    return made


class GymnaxEnv(SingleEnv):
    """An env of gymnax, or of its form.

    gymnax says that an episode is done, be it at its end or at its limit. So a step is computed a second time without
    the limit, of which the compiler leaves only what differs: the condition of the end.

    Args:
        env: has `reset_env` and `step_env`, `observation_space(params)` and `action_space(params)`.
        params: of the env; None where it has none.
        max_episode_steps: instead of the limit in the parameters.
    """

    def __init__(self, env: Any, params: Any, max_episode_steps: int | None) -> None:
        self._env, self._params, self._endless = env, params, params
        self.max_episode_steps = max_episode_steps
        name = next((name for name in _LIMITS if hasattr(params, name)), None)
        if name is not None and dataclasses.is_dataclass(params) and not isinstance(params, type):
            limit = getattr(params, name)
            self.max_episode_steps = max_episode_steps or int(limit)
            self._params = dataclasses.replace(params, **{name: type(limit)(self.max_episode_steps)})
            self._endless = dataclasses.replace(params, **{name: type(limit)(_NEVER)})
        self.observation_space = space_of(env.observation_space(self._params), "the space of observations")
        self.action_space = space_of(env.action_space(self._params), "the space of actions")

    def begin(self, key: Any) -> tuple[Any, Any]:
        """Return the first observation of an episode, and its state."""
        observation, state = self._env.reset_env(key, self._params)
        return observation, state

    def step(self, key: Any, state: Any, action: Any) -> Moved:
        """Return what a step leads to."""
        observation, following, reward, done, _ = self._env.step_env(key, state, action, self._params)
        terminated = jnp.asarray(self._env.step_env(key, state, action, self._endless)[3], bool)
        return Moved(observation, following, reward, terminated, jnp.asarray(done, bool) & ~terminated)
