"""Ids that are not registered yet: the package is imported that does, and where importing is not enough, asked to."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Final

import gymnasium

from rlcore_plugin_gymnasium.families import Family, family_of
from rlcore_plugin_gymnasium.rendering import prepare_rendering

# read by Gymnasium before 1.0, and by packages of that time, such as MinAtar, still relied upon
GROUP: Final = "gymnasium.envs"


def register(env_id: str) -> None:
    """Import what registers an id: the module that it names, or that of its family where that is installed.

    Args:
        env_id: `"module:Id-v0"`, or an id alone.

    Raises:
        ImportError: the module that it names is not there, or one cannot be imported.
    """
    module, _, name = env_id.rpartition(":")
    if name in gymnasium.registry:
        if module:
            importlib.import_module(module)
        return
    family = family_of(name)
    if family is not None:
        _import_family(family)
    if module:
        importlib.import_module(module)
    elif family is not None and family.is_here:
        module = family.modules[0]
    if module and name not in gymnasium.registry:
        for entry_point in importlib.metadata.entry_points(group=GROUP):
            if entry_point.module.partition(".")[0] == module.partition(".")[0]:
                entry_point.load()()


def newest_version(env_id: str) -> str | None:
    """Return the newest version of an id that says none; None where the id is registered as it is, or no version is."""
    name = env_id.rpartition(":")[2]
    versions = [spec.version for spec in gymnasium.registry.values() if spec.id == f"{name}-v{spec.version}"]
    return None if name in gymnasium.registry or not versions else f"{env_id}-v{max(filter(None, versions), default=0)}"


def _import_family(family: Family) -> None:
    """Import the modules of a family; where one of them is not installed, the rest is left as it is."""
    if "dm_control" in family.modules:
        prepare_rendering()  # it chooses its renderer when it is imported, rendering or not
    for module in reversed(family.modules):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return
