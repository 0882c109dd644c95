"""A Weights & Biases logger for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "logger",
            "wandb",
            f"{__name__}.logger:build",
            config=f"{__name__}.logger:Config",
            summary="Weights & Biases, online or offline",
        )
    ]
