"""Collectors that step the envs in worker processes, and one that calls a function after each step."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "collector",
            "workers",
            f"{__name__}.collector:make_workers",
            config=f"{__name__}.acting_config:ActingConfig",
            summary="steps the envs in worker processes, in step with the learner or ahead of it",
        ),
        Component(
            "collector",
            "central",
            f"{__name__}.central:CentralCollector",
            summary="steps the envs in worker processes, and acts for all of them in the process of the learner",
        ),
        Component(
            "collector",
            "each-step",
            f"{__name__}.each_step:EachStepCollector",
            summary="steps the envs in the process of the learner, and calls a function of yours after each step",
        ),
    ]
