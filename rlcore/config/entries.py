"""The entries of a section that may stand several times, found by their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def free_name(name: str, names: Collection[str]) -> str:
    """Return the name of a component that has none in the config: its own, or with a number where that is taken."""
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name}-{number}"
    return unused


def component_of(use: Any) -> str:
    """Return the name of the component that `use` names, without that of its plugin; empty where it is no text."""
    return use.rpartition(":")[2] if isinstance(use, str) else ""


def same_component(left: Any, right: Any) -> bool:
    """Return whether two `use` name the same component; one may leave out whose it is."""
    plugins = {use.rpartition(":")[0] for use in (left, right) if isinstance(use, str)} - {""}
    return component_of(left) == component_of(right) and len(plugins) < 2


def names_of(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the name of each entry: the one that it says, or that of its component, with a number if taken."""
    names: list[str] = []
    for entry in entries:
        names.append(str(entry.get("name", "")) or free_name(component_of(entry.get("use")), names))
    return names


def find(entries: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Return the number of the entry of a name, or of the only one of a component; None where there is none."""
    names = names_of(entries)
    if name in names:
        return names.index(name)
    of_component = [number for number, entry in enumerate(entries) if component_of(entry.get("use")) == name]
    return of_component[0] if len(of_component) == 1 else None
