"""Dicts and tuples within dicts and tuples: each leaf by one name, `a.b` for `b` in `a`, `a.0` for its first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import gymnasium

from rlcore.errors import ConfigError

_LEAST_SIDE: Final = 36


def is_nested(space: gymnasium.Space[Any]) -> bool:
    """Return whether a space is one of dicts or tuples of others."""
    return isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple)


def is_image(space: gymnasium.Space[Any]) -> bool:
    """Return whether a space is one of images that are large enough for the convolutions of Mnih et al. (2015)."""
    sides = sorted(space.shape or ())[-2:] if isinstance(space, gymnasium.spaces.Box) else []
    return len(sides) == 2 and sides[0] >= _LEAST_SIDE


def leaf_spaces(space: gymnasium.Space[Any]) -> dict[str, gymnasium.Space[Any]]:
    """Return the spaces of the leaves of a dict or tuple of spaces.

    Raises:
        ConfigError: two leaves have the same name.
    """
    leaves: dict[str, gymnasium.Space[Any]] = {}
    for name, leaf in _spaces(space, ""):
        if name in leaves:
            raise ConfigError(f"[env] two leaves of the observations are called {name!r}; rename one")
        leaves[name] = leaf
    return leaves


def leaf_values(observation: Any, leaves: Collection[str]) -> Any:
    """Return the values of leaves by name, of an observation that is a dict or a tuple.

    Args:
        observation: arrays in dicts and tuples; anything else is returned as it is.
        leaves: the names of those there should be; what stands at such a place is not taken apart.
    """
    return dict(_values(observation, "", leaves)) if isinstance(observation, Mapping | tuple) else observation


def _spaces(space: gymnasium.Space[Any], name: str) -> Iterator[tuple[str, gymnasium.Space[Any]]]:
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        for key, part in _parts(space.spaces):
            yield from _spaces(part, f"{name}.{key}" if name else key)
    else:
        yield name, space


def _values(value: Any, name: str, leaves: Collection[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | tuple) and name not in leaves:
        for key, part in _parts(value):
            yield from _values(part, f"{name}.{key}" if name else key, leaves)
    else:
        yield name, value


def _parts(whole: Any) -> Iterator[tuple[str, Any]]:
    pairs = whole.items() if isinstance(whole, Mapping) else enumerate(whole)
    return ((str(key), part) for key, part in pairs)
