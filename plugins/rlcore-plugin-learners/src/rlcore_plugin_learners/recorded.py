"""What objects are constructed with, as JSON: classes by their import names, spaces and settings in full, no pickle."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, Self

import gymnasium
import numpy as np

from rlcore.envs import recorded_spec, spec_record
from rlcore.errors import ConfigError
from rlcore.types import EnvSpec

_KIND: Final = "kind"
_NESTED: Final[dict[str, type[gymnasium.Space[Any]]]] = {"Dict": gymnasium.spaces.Dict, "Tuple": gymnasium.spaces.Tuple}


class Named:
    """Base of the classes that a record may name; no other class is taken when it is read."""


class Recorded(Named):
    """Base of settings, which a record has in full."""

    def recorded(self) -> dict[str, Any]:
        """Return what makes another one, by name."""
        return dict(vars(self))

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> Self:
        """Return one of what `recorded` returned."""
        return cls(**values)


def import_name(kind: type) -> str:
    """Return the module of a class and its name there, `module:name`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def imported(name: str, base: type, own: type | None = None) -> type[Any]:
    """Return the class of such a name.

    Args:
        name: of `import_name`.
        base: what it has to be a subclass of.
        own: a class that needs no import where the name is its own.

    Raises:
        ConfigError: there is no class of that name, or it is no such subclass.
    """
    if own is not None and import_name(own) == name:
        return own
    module, _, path = name.partition(":")
    try:
        kind: Any = importlib.import_module(module)
        for part in path.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the class {name} cannot be imported here: {error}") from None
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise ConfigError(f"{name} is no {base.__name__}")
    return kind


def record(value: Any, place: str) -> Any:
    """Return a value as JSON; what has no readable form is named there, and refused when it is read.

    Args:
        value: plain values, spaces, classes and objects of `Recorded`, and lists and mappings of those.
        place: where it stands, for who reads that it was left out.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, float):
        return {_KIND: "float", "value": str(value)}
    if type(value) is list:
        return [record(item, f"{place}[{number}]") for number, item in enumerate(value)]
    if type(value) in (tuple, set, frozenset):
        return {_KIND: type(value).__name__, "items": record(list(value), place)}
    if type(value) is dict:
        items = [[record(key, place), record(item, f"{place}[{key!r}]")] for key, item in value.items()]
        return {_KIND: "dict", "items": items}
    if isinstance(value, gymnasium.Space):
        return _space_record(value, place)
    if isinstance(value, type) and issubclass(value, Named):
        return {_KIND: "class", "class": import_name(value)}
    if isinstance(value, Recorded):
        values = {name: record(item, f"{place}.{name}") for name, item in value.recorded().items()}
        return {_KIND: "object", "class": import_name(type(value)), "values": values}
    return _left_out(value, place)


def restored(written: Any) -> Any:
    """Return the value of what `record` returned.

    Raises:
        ConfigError: it was left out, names a class that is not here, or is no such record.
    """
    if isinstance(written, list):
        return [restored(item) for item in written]
    if not isinstance(written, Mapping):
        return written
    kind = written.get(_KIND)
    try:
        if kind == "left out":
            raise ConfigError(f"{written['place']} is no file's: {written['type']} has no readable form")
        if kind == "float":
            return float(written["value"])
        if kind == "dict":
            return {restored(key): restored(item) for key, item in written["items"]}
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](restored(written["items"]))
        if kind == "space":
            return _space(written)
        if kind == "class":
            return imported(written["class"], Named)
        if kind == "object":
            values = {name: restored(item) for name, item in written["values"].items()}
            return imported(written["class"], Recorded).from_record(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"the record of a {kind} is not whole: {error!r}") from None
    raise ConfigError(f"a record of the kind {kind!r} is not known here")


_SEQUENCES: Final = {"tuple": tuple, "set": set, "frozenset": frozenset}


def _left_out(value: Any, place: str) -> dict[str, str]:
    return {_KIND: "left out", "place": place, "type": f"an object of {import_name(type(value))}"}


def _space_record(space: gymnasium.Space[Any], place: str) -> dict[str, Any]:
    name = type(space).__name__
    if type(space) is gymnasium.spaces.Dict:
        return {_KIND: "space", "space": name, "parts": record(dict(space.spaces), place)}
    if type(space) is gymnasium.spaces.Tuple:
        return {_KIND: "space", "space": name, "parts": record(list(space.spaces), place)}
    plain = spec_record(EnvSpec("space", space, space, 1)).get("action_space")
    return {_KIND: "space", "space": name, "plain": plain} if plain else _left_out(space, place)


def _space(written: Mapping[str, Any]) -> gymnasium.Space[Any]:
    if written["space"] in _NESTED:
        return _NESTED[written["space"]](restored(written["parts"]))
    plain = {"observation_space": written["plain"], "action_space": written["plain"]}
    return recorded_spec({"id": "space", "frame_skip": 1, "max_episode_steps": None, **plain}).action_space
