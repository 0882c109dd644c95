"""Variants of a script's settings: every combination of some levels, and the file by which a run gets its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from rlcore.errors import ConfigError

VARIANT: Final = "variant_config.json"


class VariantLevel(NamedTuple):
    """Settings that are tried in turn.

    Attributes:
        keys: where each value belongs: the keys that lead to it, such as `("algo", "learning_rate")`.
        values: one list for each combination, with a value for each of the keys.
        dir_names: of the folder of each combination.
    """

    keys: Sequence[Sequence[str]]
    values: Sequence[Sequence[Any]]
    dir_names: Sequence[str]


def make_variants(*variant_levels: VariantLevel) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every combination of the levels, and the folder of each.

    Raises:
        ConfigError: a level has not as many values as keys, not as many folders as combinations, or one twice.
    """
    for number, level in enumerate(variant_levels):
        if len(level.values) != len(level.dir_names) or any(len(row) != len(level.keys) for row in level.values):
            raise ConfigError(
                f"variant level {number} has {len(level.keys)} keys, {len(level.values)} combinations of "
                f"{sorted({len(row) for row in level.values})} values, and {len(level.dir_names)} folders; each "
                "combination has a value for each key, and a folder"
            )
        if len(set(level.dir_names)) != len(level.dir_names):
            raise ConfigError(f"variant level {number} has a folder twice: {', '.join(level.dir_names)}")
    variants: list[dict[str, Any]] = []
    for rows in product(*(level.values for level in variant_levels)):
        variant: dict[str, Any] = {}
        for level, row in zip(variant_levels, rows, strict=True):
            for path, value in zip(level.keys, row, strict=True):
                _set(variant, path, deepcopy(value))
        variants.append(variant)
    folders = [str(Path(*names)) for names in product(*(level.dir_names for level in variant_levels))]
    return variants, folders


def _set(variant: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *outer, last = path
    for key in outer:
        variant = variant.setdefault(key, {})
    variant[last] = value


def save_variant(variant: Mapping[str, Any], log_dir: str | Path) -> None:
    """Write the settings of a run into its folder."""
    (Path(log_dir) / VARIANT).write_text(json.dumps(variant) + "\n", encoding="utf-8")


def load_variant(log_dir: str | Path) -> dict[str, Any]:
    """Return the settings that `run_experiments` has written for a run.

    Raises:
        ConfigError: there are none in that folder.
    """
    path = Path(log_dir) / VARIANT
    if not path.exists():
        raise ConfigError(f"there is no {path}; run_experiments writes it, and hands its folder to the script")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def update_config(default: Mapping[str, Any], variant: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of a variant in place of their own.

    Raises:
        ConfigError: the variant has a key that the settings have not, or a table in place of a value.
    """
    updated = dict(default)
    for key, value in variant.items():
        if key not in default:
            raise ConfigError(f"the variant sets {key!r}, which the settings do not have: {', '.join(default)}")
        if isinstance(value, Mapping) != isinstance(default[key], Mapping):
            raise ConfigError(f"{key!r} is {default[key]!r} in the settings, and {value!r} in the variant")
        updated[key] = update_config(default[key], value) if isinstance(value, Mapping) else value
    return updated
