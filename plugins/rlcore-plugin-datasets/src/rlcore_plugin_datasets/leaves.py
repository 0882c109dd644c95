"""Observations of several arrays in a dataset: nested as Minari has them, dicts and tuples within each other.

In memory they are rows of packed words, as everywhere; a file and its metadata have a place for each leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlcore.errors import ConfigError


def tree_of(leaves: Mapping[str, Any], between: str = ".") -> dict[str, Any]:
    """Return dicts within dicts of what is named `a.b`, or with another character between.

    Raises:
        ConfigError: a name is that of a leaf and of a dict of leaves.
    """
    tree: dict[str, Any] = {}
    for name, leaf in leaves.items():
        *within, last = name.split(between)
        place = tree
        for part in within:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise _two(name)
        if last in place:
            raise _two(name)
        place[last] = leaf
    return tree


def is_tuple(tree: Mapping[str, Any]) -> bool:
    """Return whether the names of a dict are those of a tuple's elements."""
    return list(tree) == [str(number) for number in range(len(tree))]


def paths_of(names: Iterable[str], between: str = ".") -> dict[str, str]:
    """Return where what is named `a.b` lies in a file of groups, or what has another character between, by its name."""
    return dict(_paths(tree_of({name: name for name in names}, between), ""))


def _paths(tree: Mapping[str, Any], begin: str) -> Iterator[tuple[str, str]]:
    prefix = "_index_" if is_tuple(tree) else ""
    for name, below in tree.items():
        path = f"{begin}{prefix}{name}"
        if isinstance(below, dict):
            yield from _paths(below, f"{path}/")
        else:
            yield below, path


def _two(name: str) -> ConfigError:
    return ConfigError(f"a dataset has one place for the leaf {name!r} of the observations and for what else is there")
