"""Envs with several agents, of PettingZoo, for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "pettingzoo",
            f"{__name__}.env:PettingZooEnv",
            summary="games of several agents that act at once, with one policy for all or several",
        )
    ]
