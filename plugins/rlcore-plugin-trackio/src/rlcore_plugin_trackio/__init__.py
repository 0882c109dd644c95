"""A Trackio logger for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "logger",
            "trackio",
            f"{__name__}.logger:build",
            config=f"{__name__}.logger:Config",
            summary="Trackio, in its database on this machine",
        )
    ]
