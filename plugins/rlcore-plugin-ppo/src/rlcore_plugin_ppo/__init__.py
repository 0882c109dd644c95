"""The losses PPO and A2C, generalised advantage estimation, and the explained variance of the critic."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("loss", "ppo", f"{__name__}.loss:PPOLoss", summary="clipped surrogate objective"),
        Component("loss", "a2c", f"{__name__}.loss:A2CLoss", summary="advantage actor-critic"),
        Component("estimator", "gae", f"{__name__}.estimator:GAE", summary="generalised advantage estimation"),
        Component(
            "hook",
            "explained-variance",
            f"{__name__}.explained:ExplainedVariance",
            summary="how much of the returns the critic explains, once per batch",
        ),
    ]
