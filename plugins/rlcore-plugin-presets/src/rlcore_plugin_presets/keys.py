"""From the keyword arguments of a training to keys of its config: a name alone where only one section has it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from rlcore.errors import ArgumentTypeError, ConfigError, did_you_mean
from rlcore.plugins import is_repeated
from rlcore.run import Config

Place = tuple[str, ...]
# keys that mean the same wherever they stand
TOGETHER: Final = ("gamma",)
# whose keys a name alone means, whatever other sections have it: the seed of the run, the number of its envs
FIRST: Final = ("run", "env")


def split(keys: Mapping[str, Any]) -> tuple[dict[Place, Any], dict[str, Any]]:
    """Return the values with a full path, as `loss.gamma`, by place; and those with a name alone.

    Raises:
        ConfigError: a path has no key, or a value cannot be written in a config.
    """
    full = {place_of(name): writable(name, value) for name, value in keys.items() if "." in name}
    return full, {name: writable(name, value) for name, value in keys.items() if "." not in name}


def place_of(path: str) -> Place:
    """Return the place of a dotted path; the first entry of a section that can be repeated may go without number.

    Raises:
        ConfigError: it names no key.
    """
    section, *rest = path.split(".")
    if is_repeated(section) and rest and not rest[0].isdecimal():
        rest.insert(0, "0")
    if not section or not rest or not all(rest):
        raise ConfigError(f"{path!r} must read section.key")
    return (section, *rest)


def placed(keys: Mapping[str, Any], config: Config) -> dict[Place, Any]:
    """Return the values by the place of their keys in a config.

    Args:
        keys: values by name alone.
        config: whose sections have the keys.

    Raises:
        ConfigError: no section has such a key, or several do.
    """
    known = places(config)
    found: dict[Place, Any] = {}
    for name, value in keys.items():
        if name not in known:
            raise ConfigError(f"no section of the preset has a key {name!r}{did_you_mean(name, known)}")
        choices = known[name]
        own = next(([place] for section in FIRST for place in choices if place[0] == section), [])
        if len(choices) > 1 and not own and name not in TOGETHER:
            paths = [".".join(place) for place in choices]
            example = f"overrides={{{paths[0]!r}: {value!r}}}"
            raise ConfigError(f"{name!r} is a key of several sections: {', '.join(paths)}; say which: {example}")
        found |= dict.fromkeys(own or choices, value)
    return found


def places(config: Config) -> dict[str, list[Place]]:
    """Return where each key of the sections of a config stands, by its name alone."""
    known: dict[str, list[Place]] = defaultdict(list)
    core = {name: model for name, model in config.core().items() if name != "plugins"}
    for section, model in (core | {"checkpoint": config.checkpoint}).items():
        for key in type(model).model_fields:
            known[key].append((section, key))
    for section, entries in config.sections.items():
        for number, entry in enumerate(entries):
            place: Place = (section, str(number)) if is_repeated(section) else (section,)
            for key in type(entry.config).model_fields:
                known[key].append((*place, key))
    return dict(known)


def writable(name: str, value: Any) -> Any:
    """Return a value as TOML can hold it.

    Raises:
        ArgumentTypeError: it cannot.
    """
    if isinstance(value, np.generic | torch.Tensor) and value.ndim == 0:
        return writable(name, value.item())
    if isinstance(value, bool | int | str) or (isinstance(value, float) and not math.isnan(value)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): writable(f"{name}.{key}", item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [writable(name, item) for item in value]
    raise ArgumentTypeError(
        f"{name} = {value!r} cannot be written in a config, which holds numbers, texts, truth values, lists and tables"
    )
