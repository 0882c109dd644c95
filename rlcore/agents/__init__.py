"""Trained policies outside of training: an agent acts on what an env gives, with its transforms inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.agents.agent import Agent as Agent
    from rlcore.agents.exporting import export_agent as export_agent
    from rlcore.agents.loading import load_agent as load_agent
    from rlcore.agents.stage import set_stage as set_stage


def _lent(name: str) -> Any:
    """Return a name that a plugin lends while it is installed, as the writer of videos."""
    from rlcore.plugins.known import lend

    return lend(__name__, name)


__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.agents.agent": "Agent",
        "rlcore.agents.exporting": "export_agent",
        "rlcore.agents.loading": "load_agent",
        "rlcore.agents.stage": "set_stage",
    },
    _lent,
)
