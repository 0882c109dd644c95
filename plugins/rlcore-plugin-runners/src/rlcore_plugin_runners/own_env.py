"""Envs of a script's own: importing this registers the id under which Gymnasium makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import gymnasium

from rlcore.errors import ConfigError
from rlcore_plugin_runners.references import found

ID: Final = "rlpyt/Own-v0"


def make(env: str, arguments: Mapping[str, Any], render_mode: str | None = None) -> Any:
    """Return an env of a script's own.

    Args:
        env: the reference to the class or function that makes it.
        arguments: of its constructor.
        render_mode: a further one, where it is said.

    Raises:
        ConfigError: what it makes is no env of Gymnasium.
    """
    further = {} if render_mode is None else {"render_mode": render_mode}
    made = found(env)(**arguments, **further)
    if not isinstance(made, gymnasium.Env):
        raise ConfigError(
            f"EnvCls = {env}: it makes a {type(made).__name__}; envs derive from gymnasium.Env: reset returns an "
            "observation and infos, step returns terminated and truncated in the place of done"
        )
    return made


if ID not in gymnasium.registry:
    gymnasium.register(ID, f"{__name__}:make")
