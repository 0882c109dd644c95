"""The files that say what is published, whether it is installed or not: made of what each plugin says of itself."""

from __future__ import annotations

import importlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore_plugin_presets import published as presets

from rlcore.plugins.catalogue import FILE, PREFIX

_PLUGINS: Final = Path(__file__).resolve().parents[2] / "plugins"


def catalogue_files() -> dict[Path, str]:
    """Return the text of the catalogue and that of the list of presets, by their place."""
    folders = sorted(file.parent for file in _PLUGINS.glob("*/pyproject.toml"))
    plugins = {folder.name.removeprefix(PREFIX): _brought(folder) for folder in folders}
    return {FILE: _text(plugins), presets.FILE: _text(dict(sorted(_presets())))}


def _text(table: Mapping[str, Any]) -> str:
    return json.dumps(table, indent=1) + "\n"


def _presets() -> Iterator[tuple[str, str]]:
    """Yield the name of each preset, and of each algorithm that has one, with its distribution."""
    for file in _PLUGINS.glob("*/src/*/presets/*.toml"):
        distribution = file.relative_to(_PLUGINS).parts[0]
        yield file.stem, distribution
        yield tomllib.loads(file.read_text())["preset"]["algorithm"], distribution


def _brought(folder: Path) -> dict[str, Any]:
    """Return the keys of a `Published` that are not the default ones.

    Args:
        folder: of a plugin.
    """
    own = tomllib.loads((folder / "pyproject.toml").read_text()).get("tool", {}).get("rlcore", {})
    keys = {key.replace("-", "_"): value for key, value in own.items()}
    lends = {package: _modules(names) for package, names in keys.pop("lends", {}).items()}
    return {"components": _components(folder), **({"lends": lends} if lends else {}), **keys}


def _modules(names: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the module of each name, of the names that each module lends."""
    return dict(sorted((name, module) for module, several in names.items() for name in several))


def _components(folder: Path) -> dict[str, list[str]]:
    """Return the names of the components of a plugin by kind."""
    kinds: dict[str, list[str]] = {}
    for component in importlib.import_module(folder.name.replace("-", "_")).provide_components():
        kinds.setdefault(component.kind, []).append(component.name)
    return {kind: sorted(names) for kind, names in sorted(kinds.items())}
