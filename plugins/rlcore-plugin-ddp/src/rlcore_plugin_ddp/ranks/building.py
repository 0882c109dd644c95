"""Building the launcher that a config names, outside of any run."""

from __future__ import annotations

from typing import Any

from rlcore.run import Config, find_launcher
from rlcore.types import Context


def build_launcher(config: Config) -> Any:
    """Return the launcher of a config with `[ranks]`, as a part of which only its base class is known."""
    assert config.ranks is not None
    provided, keys = find_launcher(config.ranks, config.host)
    return provided.build(keys, Context.alone(config.run.name).for_component("launcher", provided.component.name))
