"""The component: an env by the name that Gymnasium, or MinAtar, has for it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, TypeAlias

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_torch_envs.base import Config as Config

if TYPE_CHECKING:
    from rlcore_plugin_device import FunctionalEnv

    from rlcore import Context

# module and class of an env, and the limit with which its episodes are registered
_Made: TypeAlias = tuple[str, str, int | None]
CLASSIC_CONTROL: Final[dict[str, _Made]] = {
    "Acrobot-v1": ("acrobot", "Acrobot", 500),
    "CartPole-v0": ("cartpole", "CartPole", 200),
    "CartPole-v1": ("cartpole", "CartPole", 500),
    "MountainCar-v0": ("mountain_car", "MountainCar", 200),
    "MountainCarContinuous-v0": ("mountain_car", "MountainCarContinuous", 999),
    "Pendulum-v1": ("pendulum", "Pendulum", 200),
}
# version 0 has all actions, version 1 those that have an effect
MINATAR: Final[dict[str, _Made]] = {
    f"MinAtar/{name}-v{version}": (f"minatar.{module}", name, None)
    for module, name in (
        ("asterix", "Asterix"),
        ("breakout", "Breakout"),
        ("freeway", "Freeway"),
        ("seaquest", "Seaquest"),
        ("space_invaders", "SpaceInvaders"),
    )
    for version in (0, 1)
}
_ENVS: Final = {**CLASSIC_CONTROL, **MINATAR}


def make(config: Config, context: Context) -> FunctionalEnv:
    """Build the vector env.

    Raises:
        ConfigError: there is none of that name.
    """
    if config.id not in _ENVS:
        raise ConfigError(
            f"[env] id = {config.id!r}: there is no such env in torch{did_you_mean(config.id, _ENVS)}; there are "
            f"{', '.join(_ENVS)}"
        )
    module, name, limit = _ENVS[config.id]
    made = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return made(config, context, config.max_episode_steps or limit)  # type: ignore[no-any-return]
