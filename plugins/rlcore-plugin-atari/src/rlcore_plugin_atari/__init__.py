"""Atari 2600 games for rlcore, on the Arcade Learning Environment (ale-py), whose wheel has the games."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "atari",
            f"{__name__}.env:make",
            f"{__name__}.config:Config",
            "Atari games with the usual wrappers, exact to the frame or in ALE's own vector env",
        )
    ]
