"""Making a preset fit: which one by the spaces of an environment, and what its config needs besides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import gymnasium

from rlcore.config import RawConfig, validate
from rlcore.errors import ConfigError, StorageError
from rlcore.run import try_out, validated
from rlcore.types import Context, EnvSpec
from rlcore_plugin_presets.config_text import as_raw, filled, remedied, run_name
from rlcore_plugin_presets.presets import Preset, presets


def chosen(among: Sequence[Preset], env_id: str | None, path: Path = Path("init.toml")) -> Preset:
    """Return the preset that fits an environment: one made for it before one made for any.

    Args:
        among: of one algorithm, at least one.
        env_id: of the environment; None for the one that a preset names.
        path: of the config that it will be, beside which modules of one's own lie.

    Raises:
        ConfigError: none fits, or the environment cannot be made.
    """
    candidates = [preset for preset in among if env_id is not None and preset.is_for(env_id)]
    candidates = candidates or [preset for preset in among if not preset.about.envs or len(among) == 1]
    if not candidates:
        raise ConfigError(
            f"no preset of {among[0].about.algorithm!r} is for {env_id!r}; there are: "
            + "; ".join(f"{preset.name} for {', '.join(preset.about.envs)}" for preset in among)
        )
    if env_id is not None and candidates[0].env_id is None and not candidates[0].is_for(env_id):
        raise ConfigError(f"{candidates[0]} brings its environment, so that it cannot be {env_id!r}; leave that out")
    space = spec_of(candidates[0], env_id, path).action_space
    kind = kind_of(space)
    for preset in candidates:
        if preset.about.actions in ("any", kind):
            return preset
    raise ConfigError(
        f"{env_id or candidates[0].env_id}: its actions are {space}, and "
        + " and ".join(f"preset {preset.name!r} is for {preset.about.actions} actions" for preset in candidates)
        + _others(kind, env_id)
    )


def _others(kind: str, env_id: str | None) -> str:
    """Return how to write a config with an algorithm for a kind of actions, where one is installed."""
    fitting = [preset.about.algorithm for preset in presets() if preset.about.actions in ("any", kind)]
    if not fitting:
        return ""
    algorithm = "ppo" if "ppo" in fitting else fitting[0]
    return f"; for those: rlcore init {algorithm} --env {env_id}, or any of {', '.join(dict.fromkeys(fitting))}"


def kind_of(space: gymnasium.Space[Any]) -> str:
    """Return which kind of actions a space holds: continuous, discrete or other."""
    if isinstance(space, gymnasium.spaces.Box):
        return "continuous"
    return "discrete" if isinstance(space, gymnasium.spaces.Discrete) else "other"


def spec_of(preset: Preset, env_id: str | None, path: Path) -> EnvSpec:
    """Return the spaces of an environment, which is made and closed.

    Raises:
        ConfigError: it cannot be made.
    """
    one: dict[tuple[str, ...], Any] = {("env", "num_envs"): 1} if "num_envs" in preset.values.get("env", {}) else {}
    specs: list[EnvSpec] = []

    def make(text: str) -> None:
        section = validate(as_raw(text, path)).one("env")
        assert section is not None, "a preset without [env] does not fit"
        env = section.provided.build(section.config, Context.alone("init").for_component("env", section.name))
        specs.append(env.spec)
        env.close()

    remedies(filled(preset, "init", env_id, one), make)
    return specs[0]


def lacking_data(raw: RawConfig) -> str:
    """Try a config out; return what is wrong with data that it names, such as that they are not there.

    Raises:
        RlcoreError: it cannot be built for another reason.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.INFO)  # it is tried more than once, and the run itself says it again
    try:
        try_out(validated(raw))
    except StorageError as error:
        return str(error)
    finally:
        logging.disable(disabled)
    return ""


def remedies(text: str, attempt: Callable[[str], object]) -> list[Mapping[str, Any]]:
    """Return what makes a config fit: the remedies of its errors, until none is left; see `remedied`.

    Args:
        text: of the config.
        attempt: raises what is wrong with a text.

    Raises:
        ConfigError: something has no remedy, or one that does not help.
    """
    found: list[Mapping[str, Any]] = []
    while True:
        try:
            attempt(reduce(remedied, found, text))
            return found
        except ConfigError as error:
            if not error.remedy or error.remedy in found:
                raise
            found.append(error.remedy)


def check(preset: Preset) -> None:
    """See that a preset says what it is for, and is a config whose keys fit what is installed.

    Raises:
        PluginError: it says nothing about itself, or a plugin that it names is not installed.
        ConfigError: a section does not fit.
    """
    text = filled(preset, run_name(preset, None), None)
    validate(as_raw(text, Path(f"{preset.name}.toml")))
