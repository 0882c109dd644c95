"""Which presets are installed: TOML files in the packages that the entry points of one group name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from rlcore.errors import FROM_OUTSIDE, PluginError, describe, did_you_mean, nearest
from rlcore.plugins.catalogue import PREFIX
from rlcore.plugins.discovery import Installed, installed, version_conflict
from rlcore.plugins.known import not_installed, published_presets
from rlcore.presets.preset import Preset

GROUP: Final = "rlcore.presets"
SUFFIX: Final = ".toml"


def presets() -> list[Preset]:
    """Return every installed preset in order of algorithm and name.

    Raises:
        PluginError: a package of presets cannot be imported, a preset says nothing about itself, or two have one name.
    """
    found: dict[str, Preset] = {}
    for entry in installed(GROUP):
        for preset in of_package(entry):
            other = found.setdefault(preset.name, preset)
            if other is not preset:
                raise PluginError(
                    f"preset {preset.name!r} is in {other.owner} and in {preset.owner}; uninstall one of them"
                )
    return sorted(found.values(), key=lambda preset: (preset.about.algorithm, preset.name))


def presets_of(distribution: str) -> list[Preset]:
    """Return the presets that a distribution brings, in order of name.

    Raises:
        PluginError: its package of presets cannot be imported.
    """
    entries = [entry for entry in installed(GROUP) if entry.distribution == distribution]
    return sorted((preset for entry in entries for preset in of_package(entry)), key=lambda preset: preset.name)


def of_package(entry: Installed) -> Iterator[Preset]:
    """Yield the presets of one package.

    Raises:
        PluginError: it is for another rlcore, or cannot be imported.
    """
    if conflict := version_conflict(entry):
        raise PluginError(conflict)
    try:
        folder = files(importlib.import_module(entry.module))
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        raise PluginError(f"presets of {entry.owner}: importing {entry.module!r} failed: {describe(error)}") from error
    for file in folder.iterdir():
        if file.name.endswith(SUFFIX):
            yield Preset(file.name.removesuffix(SUFFIX), file.read_text(encoding="utf-8"), entry.owner)


def named(name: str) -> list[Preset]:
    """Return the preset of a name, or all of an algorithm.

    Raises:
        PluginError: there is none; says how to install it, or what is like it.
    """
    everything = presets()
    found = [preset for preset in everything if preset.name == name]
    found = found or [preset for preset in everything if preset.about.algorithm == name]
    if found:
        return found
    known = published_presets()
    if name in known:
        raise not_installed(f"preset {name!r} is provided by", PREFIX + known[name])
    algorithms = {preset.about.algorithm for preset in everything}
    candidates = {*algorithms, *known, *(preset.name for preset in everything)}
    guess = did_you_mean(name, candidates) if nearest(name, candidates) else f"; known: {', '.join(sorted(algorithms))}"
    raise PluginError(f"there is no preset {name!r}{guess}; rlcore init --list shows all")
