"""Choosing among the presets of an algorithm by the spaces of the environment, which is made once for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium

from rlcore.config.sections import find_component
from rlcore.errors import ConfigError
from rlcore.plugins.host import PluginHost
from rlcore.presets.preset import Preset
from rlcore.types import EnvSpec
from rlcore.types.context import Context


def chosen(presets: Sequence[Preset], env_id: str | None) -> Preset:
    """Return the preset that fits an environment: one made for it before one made for any.

    Args:
        presets: of one algorithm, at least one.
        env_id: of the environment; None for the one that a preset names.

    Raises:
        ConfigError: none fits, or the environment cannot be made.
        PluginError: the plugin of the environment is not installed.
    """
    candidates = [preset for preset in presets if env_id is not None and preset.is_for(env_id)]
    candidates = candidates or [preset for preset in presets if not preset.about.envs or len(presets) == 1]
    if not candidates:
        raise ConfigError(
            f"no preset of {presets[0].about.algorithm!r} is for {env_id!r}; there are: "
            + "; ".join(f"{preset.name} for {', '.join(preset.about.envs)}" for preset in presets)
        )
    if env_id is not None and candidates[0].env_id is None and not candidates[0].is_for(env_id):
        raise ConfigError(f"{candidates[0]} brings its environment, so that it cannot be {env_id!r}; leave that out")
    space = spec_of(candidates[0], env_id).action_space
    kind = kind_of(space)
    for preset in candidates:
        if preset.about.actions in ("any", kind):
            return preset
    raise ConfigError(
        f"{env_id or candidates[0].env_id}: its actions are {space}, and "
        + " and ".join(f"preset {preset.name!r} is for {preset.about.actions} actions" for preset in candidates)
        + "; rlcore init --list shows what each is for"
    )


def kind_of(space: gymnasium.Space[Any]) -> str:
    """Return which kind of actions a space holds: continuous, discrete or other."""
    if isinstance(space, gymnasium.spaces.Box):
        return "continuous"
    return "discrete" if isinstance(space, gymnasium.spaces.Discrete) else "other"


def spec_of(preset: Preset, env_id: str | None) -> EnvSpec:
    """Return the spaces of an environment, which is made and closed.

    Raises:
        ConfigError: it cannot be made.
    """
    keys = dict(preset.values.get("env", {}))
    use = str(keys.pop("use", "gymnasium"))
    keys.pop("name", None)
    if env_id is not None and preset.env_id is not None:
        keys[preset.about.env_key] = env_id
    if "num_envs" in keys:
        keys["num_envs"] = 1
    provided, config = find_component(PluginHost(), "env", use, keys)
    env = provided.build(config, Context.alone("init").for_component("env", use))
    try:
        spec: EnvSpec = env.spec
    finally:
        env.close()
    return spec
