"""Transforms of observations, rewards and actions for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "transform",
            "running-observation-norm",
            f"{__name__}.observation_norm:RunningObservationNorm",
            summary="normalise observations by statistics that are learnt while training",
        ),
        Component(
            "transform",
            "frame-stack",
            f"{__name__}.frame_stack:FrameStack",
            summary="the newest observations of each env as one",
        ),
        Component(
            "transform", "reward-scale", f"{__name__}.reward_scale:RewardScale", summary="reward * scale + shift"
        ),
        Component(
            "transform",
            "reward-norm",
            f"{__name__}.reward_norm:RewardNorm",
            summary="divide rewards by the running deviation of the discounted return",
        ),
        Component(
            "transform",
            "time-feature",
            f"{__name__}.time_feature:TimeFeature",
            summary="append the share of the step limit that has passed",
        ),
        Component(
            "transform",
            "double-to-float",
            f"{__name__}.double_to_float:DoubleToFloat",
            summary="observations in single precision",
        ),
        Component(
            "transform",
            "step-counter",
            f"{__name__}.step_counter:StepCounter",
            summary="add the steps of the episode so far to batches",
        ),
        Component(
            "transform",
            "reward-sum",
            f"{__name__}.reward_sum:RewardSum",
            summary="add the return of the episode so far to batches",
        ),
        Component(
            "transform",
            "action-clip",
            f"{__name__}.action_bounds:ActionClip",
            summary="clip actions without bounds to those of the env",
        ),
        Component(
            "transform",
            "action-scale",
            f"{__name__}.action_bounds:ActionScale",
            summary="map actions from -1 to 1 onto the bounds of the env",
        ),
    ]
