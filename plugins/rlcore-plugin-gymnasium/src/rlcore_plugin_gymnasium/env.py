"""The env component: chooses between envs stepped one by one and an environment's own vector form."""

from __future__ import annotations

import gymnasium

from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, RlcoreError, describe
from rlcore.types import Context
from rlcore_plugin_gymnasium import advice
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.native import NativeEnv
from rlcore_plugin_gymnasium.registering import register
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
        spec = gymnasium.spec(config.id.rpartition(":")[2])
        one_by_one = config.frame_skip > 1 or config.wrappers or config.mask_key is not None
        has_native = spec.vector_entry_point is not None and not one_by_one
        native = config.vectorization == "native" or (
            config.vectorization == "auto" and has_native and config.num_envs >= NATIVE_FROM
        )
        if native and not has_native:
            raise ConfigError(
                f"[env] vectorization = 'native': {config.id} has no vector form of its own"
                if spec.vector_entry_point is None
                else "[env] vectorization = 'native' cannot wrap each env; leave out wrappers, or use 'serial'"
                if config.wrappers
                else "[env] vectorization = 'native' gives no infos of each env; leave out mask_key, or use 'serial'"
                if config.mask_key is not None
                else "[env] vectorization = 'native' cannot repeat actions; set frame_skip = 1"
            )
        if native:
            return NativeEnv(config, context.heart)
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
        raise ConfigError(
            f"[env] id = {config.id!r} cannot be made: {error}{advice.on_an_unknown_id(config.id)}"
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
