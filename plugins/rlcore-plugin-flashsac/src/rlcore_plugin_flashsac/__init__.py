"""Off-policy learning by norm-bounded networks of blocks and categorical critics: FlashSAC, XQC, SimbaV2, BRO."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model",
            "blocks",
            f"{__name__}.model:BlocksModel",
            summary="an actor and categorical critics of blocks, their targets",
        ),
        Component(
            "loss",
            "categorical-sac",
            f"{__name__}.loss:CategoricalSACLoss",
            summary="SAC over distributions of the return: FlashSAC, XQC, SimbaV2 and BRO are settings",
        ),
        Component(
            "transform",
            "return-scale",
            f"{__name__}.return_scale:ReturnScale",
            summary="learn how far returns reach; the loss scales rewards by it",
        ),
        Component(
            "transform",
            "observation-scale",
            f"{__name__}.observation_scale:ObservationScale",
            summary="learn mean and deviation of observations; the model blocks normalises by them",
        ),
        Component(
            "hook",
            "resets",
            f"{__name__}.resets:Resets",
            summary="lets networks and their optimizers start over, with the frames that were collected",
        ),
    ]
