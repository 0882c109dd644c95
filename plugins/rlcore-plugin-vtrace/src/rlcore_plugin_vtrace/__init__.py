"""V-trace, and the losses that learn from batches of earlier policies by it: IMPALA and APPO."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("loss", "impala", f"{__name__}.impala:IMPALALoss", summary="actor-critic with V-trace"),
        Component("loss", "appo", f"{__name__}.appo:APPOLoss", summary="clipped surrogate objective with V-trace"),
        Component("estimator", "vtrace", f"{__name__}.estimator:VTrace", summary="values by importance weights"),
    ]
