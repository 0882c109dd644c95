"""Transforms of observations, rewards and actions for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        _transform(
            "running-observation-norm",
            "observation_norm:RunningObservationNorm",
            "normalise observations by statistics that are learnt while training",
        ),
        _transform("frame-stack", "frame_stack:FrameStack", "the newest observations of each env as one"),
        _transform("reward-scale", "reward_scale:RewardScale", "reward * scale + shift"),
        _transform(
            "reward-norm",
            "reward_norm:RewardNorm",
            "divide rewards by the running deviation of the discounted return",
        ),
        _transform("time-feature", "time_feature:TimeFeature", "append the share of the step limit that has passed"),
        _transform("double-to-float", "double_to_float:DoubleToFloat", "observations in single precision"),
        _transform("step-counter", "step_counter:StepCounter", "add the steps of the episode so far to batches"),
        _transform("reward-sum", "reward_sum:RewardSum", "add the return of the episode so far to batches"),
        _transform("action-clip", "action_bounds:ActionClip", "clip actions without bounds to those of the env"),
        _transform("action-scale", "action_bounds:ActionScale", "map actions from -1 to 1 onto the bounds of the env"),
    ]


def _transform(name: str, place: str, summary: str) -> Component:
    return Component("transform", name, f"{__name__}.{place}", summary=summary)
