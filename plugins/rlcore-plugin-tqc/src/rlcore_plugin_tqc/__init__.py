"""Truncated quantile critics: SAC over quantiles of the return."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("loss", "tqc", f"{__name__}.loss:TQCLoss", summary="SAC over quantiles, without the largest ones")
    ]
