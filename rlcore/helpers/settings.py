"""Reading a settings object, and importing the plugin that a builder needs."""

from __future__ import annotations

import importlib
from typing import Any, Final

from rlcore.errors import ConfigError, PluginError, did_you_mean

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
    value = getattr(settings, name, default)
    if value is _MISSING:
        known = [key for key in getattr(settings, "__dict__", {}) if not key.startswith("_")]
        raise ConfigError(f"the settings have no {name!r}{did_you_mean(name, known)}")
    return value


def from_plugin(distribution: str, module: str, name: str) -> Any:
    """Return a name of a module of a plugin.

    Raises:
        PluginError: the plugin is not installed; says how to install it.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise PluginError(f"this needs {distribution}, which is not installed: pip install {distribution}") from error
