"""Hyperparameter sweeps for rlcore, over Optuna: the command `rlcore sweep`, and the hook in the runs of a study."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "hook",
            "sweep-trial",
            f"{__name__}.hook:SweepTrial",
            summary="reports the evaluations of a run to its study, and stops a run that is pruned",
        )
    ]
