"""Importing what a config names as `"module:Name"`: a class or function of the user's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rlcore.config.own_modules import meant
from rlcore.errors import FROM_OUTSIDE, ConfigError, describe, did_you_mean


def import_named(place: str, key: str) -> Callable[..., Any]:
    """Import and return what `place` names.

    Args:
        place: `"module:Name"`; a dotted module, and a dotted name within it, are fine.
        key: where the config says so, for messages, as in `[model] encoder`.

    Raises:
        ConfigError: it is not of that form, cannot be imported, has no such name, or is nothing that can be called.
    """
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{key} = {place!r}: expected 'module:Name', such as 'my_nets:Encoder'")
    found: Any = _module(module_name, key, place)
    for part in name.split("."):
        names = vars(found)
        if part not in names:
            known = [known for known in names if not known.startswith("_")]
            raise ConfigError(f"{key} = {place!r}: {module_name} has no {part!r}{did_you_mean(part, known)}")
        found = names[part]
    if not callable(found):
        raise ConfigError(f"{key} = {place!r}: a {type(found).__name__} cannot be called to build anything")
    named: Callable[..., Any] = found
    return named


def _module(name: str, key: str, place: str) -> Any:
    try:
        return importlib.import_module(name)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}.")
        if absent:
            raise ConfigError(
                f"{key} = {place!r}: there is no module {name!r}{meant(name)}; put its file beside the config, name "
                "its folder in [plugins] path, or install the package that has it"
            ) from error
        raise ConfigError(f"{key} = {place!r}: importing {name} failed: {describe(error)}") from error
