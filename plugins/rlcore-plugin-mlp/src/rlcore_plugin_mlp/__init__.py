"""Multilayer perceptrons (MLPs) and action distributions for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [Component("model", "mlp", f"{__name__}.model:MLPModel", summary="separate MLPs for each part")]
