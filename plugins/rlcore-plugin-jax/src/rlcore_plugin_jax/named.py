"""From the `id` of a config to one env: what makes it, and whose interface it has."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from rlcore.config import import_named
from rlcore.errors import FROM_OUTSIDE, ConfigError, RlcoreError, describe
from rlcore_plugin_jax.brax_env import BraxEnv
from rlcore_plugin_jax.gymnax_env import GymnaxEnv, registered

if TYPE_CHECKING:
    from rlcore_plugin_jax.env import Config
    from rlcore_plugin_jax.single import SingleEnv


def single_env(config: Config) -> SingleEnv:
    """Return the env that a config names.

    Raises:
        ConfigError: there is none, it cannot be made, or has neither interface.
    """
    try:
        if ":" in config.id:
            made = import_named(config.id, "[env] id")(**config.kwargs)
        else:
            made = registered(config.id, config.kwargs)
        env, params = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if hasattr(type(env), "reset_env") and hasattr(type(env), "step_env"):
            params = getattr(env, "default_params", None) if params is None else params
            return GymnaxEnv(env, params, config.max_episode_steps)
        if hasattr(env, "reset") and _arguments(getattr(env, "step", None)) == 2:
            return BraxEnv(env, config.max_episode_steps)
    except (RlcoreError, *FROM_OUTSIDE):
        raise
    except BaseException as error:
        raise ConfigError(f"[env] id = {config.id!r} cannot be made: {describe(error)}") from error
    raise ConfigError(
        f"[env] id = {config.id!r}: the class {type(env).__name__} has neither gymnax's reset_env(key, params) and "
        "step_env(key, state, action, params) nor Brax's reset(key) and step(state, action); a step that begins the "
        "next episode itself, as in gymnax's wrappers, hides the last observation of an episode"
    )


def _arguments(function: Any) -> int | None:
    return len(inspect.signature(function).parameters) if callable(function) else None
