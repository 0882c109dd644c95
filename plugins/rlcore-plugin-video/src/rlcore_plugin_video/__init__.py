"""Videos of episodes for rlcore, and recorders of pixels and steps."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("hook", "video", f"{__name__}.hook:VideoHook", summary="videos of evaluations, as mp4 and in loggers")
    ]
