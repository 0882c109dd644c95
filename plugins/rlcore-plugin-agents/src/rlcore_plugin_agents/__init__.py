"""Trained policies outside of training: an agent acts on what an env gives, with its transforms inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_agents.agent import Agent as Agent
    from rlcore_plugin_agents.exporting import export_agent as export_agent
    from rlcore_plugin_agents.loading import load_agent as load_agent
    from rlcore_plugin_agents.stage import set_stage as set_stage

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore_plugin_agents.agent": "Agent",
        "rlcore_plugin_agents.exporting": "export_agent",
        "rlcore_plugin_agents.loading": "load_agent",
        "rlcore_plugin_agents.stage": "set_stage",
    },
)


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands, and lends `rlcore` agents."""
    return []
