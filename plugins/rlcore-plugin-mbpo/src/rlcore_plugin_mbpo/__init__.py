"""Model-based training: a dynamics ensemble beside actor and critics, and buffers that imagine rollouts with it."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model", "mbpo", f"{__name__}.model:MBPOModel", summary="an actor, critics, and an ensemble of dynamics"
        ),
        Component(
            "buffer",
            "imagined-replay",
            f"{__name__}.replay:ImaginedReplay",
            summary="replay beside rollouts that a model of the env imagines (MBPO)",
        ),
        Component(
            "buffer",
            "imagined-dataset",
            f"{__name__}.dataset:ImaginedDataset",
            summary="a dataset beside imagined rollouts, with a penalty where their model is unsure (MOPO)",
        ),
    ]
