"""Ranks and env workers as actors of Ray, for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("launcher", "ray", f"{__name__}.launcher:RayRanks", summary="ranks as actors of Ray, on its nodes"),
        Component(
            "collector",
            "actors",
            f"{__name__}.collector:ActorsCollector",
            summary="steps the envs in actors of Ray, in step with the learner or ahead of it",
        ),
    ]
