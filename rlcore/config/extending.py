"""A config that begins with another one: `extends = "base.toml"`, and what of the two counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.config.core import DEFAULT_USE, CheckpointConfig
from rlcore.config.entries import names_of, same_component
from rlcore.config.policies import AGENTS, OF_POLICIES, POLICY, names_in
from rlcore.errors import ConfigError
from rlcore.plugins.component import COMPONENT_SECTIONS

EXTENDS: Final = "extends"
# keys of `[plugins]` with paths that are relative to the file in which they stand
_PATHS: Final = ("files", "path")


@dataclass
class Layer:
    """The sections of one file, or of several of which one extends the other.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: of the file that extends the others, for messages.
        sources: key path to the file that says it; what is not there is from `path`.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)

    def sources_of(self, place: str, table: dict[str, Any]) -> dict[str, str]:
        """Return from which file each key of a table comes, and those of tables in it, as `key.key`."""
        keys = [
            *table,
            *(f"{key}.{inner}" for key, value in table.items() if isinstance(value, dict) for inner in value),
        ]
        return {key: self.sources.get(f"{place}.{key}", str(self.path)) for key in keys}


def extended(base: Layer, top: Layer) -> Layer:
    """Return the sections of a base with those of the file that extends it.

    A section has the keys of both; of a key that both have, the value of `own` counts, a table too. A section of
    another component than that of the base replaces it. The tables of several policies, such as `[model.NAME]` and
    `[loss.NAME]`, are treated as sections of their own; where the base has one policy, several replace it. The entries
    of a section that may stand several times replace those of the base; or else, where none of them has a `use`, each
    changes the one of its name or of its policy, or the only one.

    Raises:
        ConfigError: entries of a section that neither replace nor change those of the base.
    """
    both = Layer({}, top.path)
    policies = {name for layer in (base, top) for name in names_in(layer.values.get("model"))}
    for section in dict.fromkeys([*base.values, *top.values]):
        if section not in top.values:
            _take(both, section, base)
        elif section not in base.values:
            _take(both, section, top)
        elif isinstance(top.values[section], list):
            _repeated(both, section, base, top)
        else:
            _single(both, section, base, top, policies if section in OF_POLICIES else ())
    return both


def with_absolute_paths(layer: Layer, folder: Path) -> Layer:
    """Return a base whose paths mean the same in a file that lies elsewhere."""
    plugins = layer.values.get("plugins", {})
    for key in _PATHS:
        names = plugins.get(key)
        if isinstance(names, list):
            plugins[key] = [str(folder / name) if isinstance(name, str) else name for name in names]
    return layer


def _put(layer: Layer, place: str, table: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    layer.sources |= {f"{place}.{key}": source for key, source in sources.items()}
    return dict(table)


def _take(both: Layer, section: str, layer: Layer) -> None:
    """Take a section from one of the two."""
    value = layer.values[section]
    if isinstance(value, list):
        places = [f"{section}.{number}" for number in range(len(value))]
        both.values[section] = [
            _put(both, place, entry, layer.sources_of(place, entry)) for place, entry in zip(places, value, strict=True)
        ]
    else:
        both.values[section] = _put(both, section, value, layer.sources_of(section, value))


def _single(both: Layer, section: str, base: Layer, top: Layer, policies: Collection[str]) -> None:
    old, new = base.values[section], top.values[section]
    default = DEFAULT_USE.get(section)
    if section in COMPONENT_SECTIONS and "use" in new and not same_component(old.get("use", default), new["use"]):
        kept = CheckpointConfig.model_fields if section == "checkpoint" else ()
        old = {key: value for key, value in old.items() if key in kept}
    elif section == "model" and names_in(new) and not names_in(old):
        old = {}
    sources = base.sources_of(section, old) | top.sources_of(section, new)
    for name in policies:
        if isinstance(old.get(name), dict) and isinstance(new.get(name), dict):
            new = {**new, name: _of_policy(old[name], new[name], old.get("use", default))}
    both.values[section] = _put(both, section, {**old, **new}, sources)


def _of_policy(old: dict[str, Any], new: dict[str, Any], of_all: Any) -> dict[str, Any]:
    """Return what a policy has of a section; `of_all` is the component where the policy names none."""
    if "use" in new and not same_component(old.get("use", of_all), new["use"]):
        old = {key: value for key, value in old.items() if key == AGENTS}
    return {**old, **new}


def _repeated(both: Layer, section: str, base: Layer, top: Layer) -> None:
    changes = [entry for entry in top.values[section] if "use" not in entry]
    if not changes:
        _take(both, section, top)
        return
    if len(changes) < len(top.values[section]):
        raise ConfigError(
            f"{top.path}: [[{section}]] with a use replace those of {base.path}, and without one they change them; "
            "give all of them a use, or none"
        )
    _take(both, section, base)
    for number, change in enumerate(changes):
        index = _changed(section, change, base, top)
        place = f"{section}.{index}"
        sources = top.sources_of(f"{section}.{number}", change)
        both.values[section][index] |= _put(both, place, change, sources)


def _changed(section: str, change: dict[str, Any], base: Layer, top: Layer) -> int:
    """Return the number of the entry of the base that an entry without a `use` changes."""
    names = names_of(base.values[section])
    if "name" not in change and len(names) == 1:
        return 0
    if change.get("name") in names:
        return names.index(str(change["name"]))
    of_policy = [number for number, entry in enumerate(base.values[section]) if POLICY in entry]
    of_policy = [number for number in of_policy if base.values[section][number][POLICY] == change.get(POLICY)]
    if "name" not in change and len(of_policy) == 1:
        return of_policy[0]
    asked = f"; none is called {change['name']!r}" if "name" in change else ""
    raise ConfigError(
        f"{top.path}: a [[{section}]] without a use changes one of {base.path}, which has {', '.join(names) or 'none'}"
        f"{asked}; name one of them, or give it a use"
    )
