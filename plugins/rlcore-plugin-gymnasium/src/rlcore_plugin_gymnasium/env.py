"""The env component: chooses between envs stepped one by one and an environment's own vector form."""

from __future__ import annotations

import gymnasium

from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, RlcoreError, describe
from rlcore.types import Context
from rlcore_plugin_gymnasium import advice
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.native import NativeEnv
from rlcore_plugin_gymnasium.registering import newest_version, register
from rlcore_plugin_gymnasium.rendering import advice_on_making, prepare_rendering
from rlcore_plugin_gymnasium.serial import SerialEnv

# From this many envs on, a vector form of the environment's own beats stepping one by one.
NATIVE_FROM = 16


def make(config: Config, context: Context) -> SerialEnv | NativeEnv:
    """Build the vector env.

    Raises:
        ConfigError: there is no such environment, or it has no vector form of its own.
        EnvError: its constructor fails.
    """
    if config.render_mode == "rgb_array":
        prepare_rendering()
    try:
        register(config.id)
        newest = newest_version(config.id)
        if newest is not None:  # the newest of today is another one in later releases of its library
            raise ConfigError(
                f"[env] id = {config.id!r} says no version; the newest is {newest!r}", remedy={"env": {"id": newest}}
            )
        native = _vector_form(config, context)
        if native is not None:
            return native
        env = SerialEnv(config, heart=context.heart)
        # of training and in the process that trains: envs for something else have a purpose in their names
        if "make_env_for" in context.built and " " not in context.name:
            env.warn_of_learning()
        return env
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError(
            f"[env] id = {config.id!r} needs a package that is not installed: {error}"
            f"{advice.on_a_missing_package(config.id)}{advice_on_making(error)}"
        ) from error
    except ModuleNotFoundError as error:
        what_to_install = advice.on_a_missing_module(config.id, error.name) or advice.on_a_missing_package(config.id)
        raise ConfigError(
            f"[env] id = {config.id!r} cannot be made: {error}{what_to_install}{advice_on_making(error)}"
        ) from error
    except gymnasium.error.UnregisteredEnv as error:
        as_game = {"use": "pettingzoo", "id": config.id, "num_envs": config.num_envs}
        raise ConfigError(
            f"[env] id = {config.id!r} cannot be made: {error}{advice.on_an_unknown_id(config.id)}",
            remedy={"env": as_game} if advice.may_be_a_game(config.id) else {},
        ) from error
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise ConfigError(f"[env] id = {config.id!r} cannot be made: {error}{advice_on_making(error)}") from error
    except RlcoreError:
        raise
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # an exit too
        raise EnvError(
            f"env {config.id!r} cannot be made: {describe(error)}{advice.on_other_versions(config.id)}"
            f"{advice_on_making(error)}"
        ) from error


def _vector_form(config: Config, context: Context) -> NativeEnv | None:
    """Return the envs in the vector form of their own; None where stepping one by one is faster, or all there is."""
    is_native = config.vectorization == "native"
    if not is_native and (config.vectorization == "serial" or config.num_envs < NATIVE_FROM):
        return None
    obstacle = _obstacle(config)
    if obstacle is None:
        try:
            return NativeEnv(config, context.heart)
        except ConfigError:  # it begins episodes otherwise, or observes no array
            if is_native:
                raise
    elif is_native:
        raise ConfigError(f"[env] vectorization = 'native'{obstacle}")
    return None


def _obstacle(config: Config) -> str | None:
    if gymnasium.spec(config.id.rpartition(":")[2]).vector_entry_point is None:
        return f": {config.id} has no vector form of its own"
    if config.wrappers:
        return " cannot wrap each env; leave out wrappers, or use 'serial'"
    if config.mask_key is not None:
        return " gives no infos of each env; leave out mask_key, or use 'serial'"
    return " cannot repeat actions; set frame_skip = 1" if config.frame_skip > 1 else None
