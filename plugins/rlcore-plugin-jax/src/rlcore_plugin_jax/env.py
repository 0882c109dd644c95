"""The component: its config, and what must be there before JAX is asked for anything."""

from __future__ import annotations

import importlib
import logging
import os
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from rlcore.errors import ConfigError
from rlcore.state import untouched_generators

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore_plugin_jax.vector import JaxEnv


class Config(BaseModel, extra="forbid"):
    """Which env, and how many."""

    id: str = Field(description="of gymnax, such as CartPole-v1, or 'module:make' for what makes an env of your own")
    num_envs: int = Field(1, ge=1, description="envs that step together")
    max_episode_steps: int | None = Field(None, ge=1, description="truncate episodes here instead of the env's limit")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="arguments of what makes the env")


def make(config: Config, context: Context) -> JaxEnv:
    """Build the vector env.

    JAX takes its memory of a GPU as it needs it, unless XLA_PYTHON_CLIENT_PREALLOCATE says otherwise: alone it would
    take three quarters of it at once, and leave too little for the model.

    Raises:
        ConfigError: JAX is missing or cannot use the device of the run, there is no such env, or it has another form.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    logging.getLogger("jax").setLevel(logging.WARNING)  # it logs each kind of device that it does not find
    # JAX and what gymnax imports draw from the global generators when they are imported, once in a process
    with untouched_generators():
        try:
            importlib.import_module("jax")
        except ImportError as error:
            raise ConfigError(
                f"[env] use = 'jax' needs JAX, which is not installed: {error}; pip install 'rlcore[jax]'"
            ) from error
        from rlcore_plugin_jax.vector import JaxEnv

        return JaxEnv(config, context)
