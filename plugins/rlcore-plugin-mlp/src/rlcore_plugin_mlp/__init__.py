"""Multi-layer perceptrons and action distributions for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [Component("model", "mlp", f"{__name__}.model:MLPModel", summary="separate perceptrons for each part")]
