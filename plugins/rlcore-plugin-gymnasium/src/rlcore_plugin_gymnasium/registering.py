"""Ids of packages that register none when they are imported, but name in their metadata what does."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Final

import gymnasium

# read by Gymnasium before 1.0, and by packages of that time, such as MinAtar, still relied upon
GROUP: Final = "gymnasium.envs"


def register(env_id: str) -> None:
    """Import the module that an id names; where that does not register the id, call what the package says.

    Args:
        env_id: `"module:Id-v0"`, or an id alone, for which there is nothing to do.

    Raises:
        ImportError: there is no such module, or it cannot be imported.
    """
    module, _, name = env_id.rpartition(":")
    if not module:
        return
    importlib.import_module(module)
    if name in gymnasium.registry:
        return
    for entry_point in importlib.metadata.entry_points(group=GROUP):
        if entry_point.module.partition(".")[0] == module.partition(".")[0]:
            entry_point.load()()
