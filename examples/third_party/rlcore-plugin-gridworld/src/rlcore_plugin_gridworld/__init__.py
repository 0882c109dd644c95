"""A small gridworld for rlcore whose state is saved in checkpoints."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    target = f"{__name__}.env:Gridworld"
    return [Component("env", "gridworld", target, summary="walk to the goal of a map")]
