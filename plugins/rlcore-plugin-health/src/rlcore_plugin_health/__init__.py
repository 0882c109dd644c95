"""A hook for rlcore that says in plain words what goes wrong in a run."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("hook", "health", f"{__name__}.health:Health", summary="says in words what goes wrong in a run"),
    ]
