"""Ends an rlcore run when the mean return passes a threshold."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    target = f"{__name__}.hook:ReturnWatch"
    return [Component("hook", "return-watch", target, summary="ends a run at a mean return")]
