"""Reading a settings object."""

from __future__ import annotations

from typing import Any, Final

from rlcore.errors import ConfigError, did_you_mean

_MISSING: Final = object()


def setting(settings: object, name: str, default: Any = _MISSING) -> Any:
    """Return an attribute of a settings object.

    Args:
        settings: anything with attributes.
        name: of the attribute.
        default: what is meant where there is none; without it, the attribute is required.

    Raises:
        ConfigError: it is required and not there; names the nearest one.
    """
    value = getattr(settings, name, default)  # any name
    if value is _MISSING:
        held = as_dict(settings)
        names = [key for key in held if not key.startswith("_")] if isinstance(held, dict) else []
        raise ConfigError(f"the settings have no {name!r}{did_you_mean(name, names)}")
    return value


def as_dict(settings: object) -> Any:
    """Return what a settings object has, by name; itself where its attributes are not in a dictionary."""
    return vars(settings) if hasattr(settings, "__dict__") else settings  # as objects with slots have none
