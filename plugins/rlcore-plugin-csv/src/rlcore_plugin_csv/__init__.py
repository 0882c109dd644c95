"""A CSV logger for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "logger",
            "csv",
            f"{__name__}.logger:build",
            config=f"{__name__}.logger:Config",
            summary="metrics.csv in the run folder",
        )
    ]
