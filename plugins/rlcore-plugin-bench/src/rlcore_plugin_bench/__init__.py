"""Learning over tasks, methods and seeds: the command `rlcore bench`, and the hook that records the curve of a run."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "hook",
            "learning-curve",
            f"{__name__}.hook:LearningCurve",
            summary="records returns over frames and seconds, for the table of a benchmark",
        )
    ]
