"""From a preset to the text of a config: the name of the run, the environment and other keys are put in."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.config.core import SAFE_NAME
from rlcore.config.raw import RawConfig
from rlcore.errors import ConfigError
from rlcore.presets.preset import TABLE, Preset
from rlcore.version import __version__

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def run_name(preset: Preset, env_id: str | None) -> str:
    """Return what a run is called that nobody named: algorithm and environment."""
    env = env_id or preset.env_id
    name = f"{preset.about.algorithm}-{env.rpartition(':')[2]}" if env else preset.name
    return _UNSAFE.sub("-", name)[:100]


def checked_name(name: str) -> str:
    """Return a name that a run can have.

    Raises:
        ConfigError: it cannot.
    """
    if not SAFE_NAME.fullmatch(name):
        raise ConfigError(
            f"the name {name!r} cannot be that of a folder: letters, digits, '.', '_' and '-', at most 100, "
            "first a letter or digit"
        )
    return name


def filled(preset: Preset, name: str, env_id: str | None, keys: Mapping[tuple[str, ...], Any] | None = None) -> str:
    """Return the text of a config, with the comments of the preset.

    Args:
        preset: where the text comes from.
        name: of the run.
        env_id: of the environment; None for that of the preset.
        keys: further values by their path, such as `("loss", "gamma")` or `("optimizer", "0", "lr")`.
    """
    import tomlkit  # only those who write a config wait for it

    document = tomlkit.parse(preset.text)
    document.remove(TABLE)
    values: dict[tuple[str, ...], Any] = {("run", "name"): name}
    if env_id is not None:
        values["env", "id"] = env_id
    for path, value in {**values, **(keys or {})}.items():
        table: Any = document
        for part in path[:-1]:
            if isinstance(table, list):
                table = table[int(part)]
            else:
                table = table.setdefault(part, tomlkit.table())
        table[path[-1]] = value
    return "\n".join([*_heading(preset, env_id), "", tomlkit.dumps(document).strip()]) + "\n"


def _heading(preset: Preset, env_id: str | None) -> Iterable[str]:
    """Yield the comments above a config."""
    about = preset.about
    yield f"# {about.summary}."
    yield f"# Preset {preset.name} of {preset.owner}, written by rlcore {__version__}."
    for reached in about.reached:
        yield f"# Measured with the settings of the preset: {reached}"
    if env_id is not None and about.reached and all(reached.env != env_id for reached in about.reached):
        yield f"# Nothing was measured on {env_id}."


def as_raw(text: str, path: Path) -> RawConfig:
    """Return the config that a text is, as if it had been read from a file."""
    return RawConfig(tomllib.loads(text), path)
