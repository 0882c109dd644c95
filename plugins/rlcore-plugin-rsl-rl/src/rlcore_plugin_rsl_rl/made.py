"""Making the `VecEnv` that a config names, and holding it against the interface of rsl_rl 5."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from rlcore.config import import_named
from rlcore.errors import FROM_OUTSIDE, ConfigError, RlcoreError, describe

_NEEDED: Final = ("num_envs", "num_actions", "get_observations", "step")


def made(config: Any, device: torch.device) -> Any:
    """Return the `VecEnv` that a section [env] names.

    Raises:
        ConfigError: it cannot be made, has another interface, another number of envs, or is on another device.
    """
    place = f"[env] make = {config.make!r}"
    make = import_named(config.make, "[env] make")
    try:
        vec_env = make(num_envs=config.num_envs, device=str(device), **config.kwargs)
    except (RlcoreError, *FROM_OUTSIDE):
        raise
    except BaseException as error:
        raise ConfigError(f"{place} cannot be made: {describe(error)}") from error
    check_interface(vec_env, place)
    if vec_env.num_envs != config.num_envs:
        raise ConfigError(
            f"{place} has {vec_env.num_envs} envs, and num_envs = {config.num_envs}; let it take its argument num_envs"
        )
    own = torch.device(getattr(vec_env, "device", device))
    if own.type != device.type:
        raise ConfigError(f"{place} is on {own}, and the run on {device}; let it take its argument device")
    return vec_env


def check_interface(vec_env: Any, place: str) -> None:
    """Hold an env against rsl_rl's interface.

    Raises:
        ConfigError: something is missing.
    """
    missing = [name for name in _NEEDED if not hasattr(vec_env, name)]
    if missing:
        raise ConfigError(
            f"{place} is a {type(vec_env).__name__} without {', '.join(missing)}; rsl_rl's VecEnv has "
            f"{', '.join(_NEEDED)}"
        )


def missing_of(value: Any, shape: tuple[int, ...], device: torch.device) -> str | None:
    """Return what is wrong with a tensor, as `a tensor of the shape [2], not [3]`; None where it is right."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}, not a tensor,"
    if value.device.type != device.type:
        return f"a tensor on {value.device}, not on {device},"
    if tuple(value.shape) != shape:
        return f"a tensor of the shape {list(value.shape)}, not {list(shape)},"
    return None
