"""Transforms of observations, rewards and actions for rlcore."""

from typing import Final

from rlcore import Component, hookimpl

# name, place in this package, summary
_TRANSFORMS: Final = (
    (
        "running-observation-norm",
        "observation_norm:RunningObservationNorm",
        "normalise observations by statistics that are learnt while training",
    ),
    ("frame-stack", "frame_stack:FrameStack", "the latest observations of each env as one"),
    ("flatten", "flatten:Flatten", "any observation as one vector, numbered choices as one-hot vectors"),
    ("select", "select:Select", "some of the numbers of an observation"),
    ("reward-scale", "reward_scale:RewardScale", "reward * scale + shift"),
    (
        "reward-norm",
        "reward_norm:RewardNorm",
        "divide rewards by the running standard deviation of the discounted return",
    ),
    ("time-feature", "time_feature:TimeFeature", "append the fraction of the step limit that has passed"),
    ("last-step", "last_step:LastStep", "append the last action and the last reward to observations"),
    ("double-to-float", "double_to_float:DoubleToFloat", "observations in single precision"),
    ("step-counter", "step_counter:StepCounter", "add the steps of the episode so far to batches"),
    ("reward-sum", "reward_sum:RewardSum", "add the return of the episode so far to batches"),
    ("action-clip", "action_bounds:ActionClip", "clip actions without bounds to those of the env"),
    ("action-scale", "action_bounds:ActionScale", "map actions from -1 to 1 onto the bounds of the env"),
)


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("transform", name, f"{__name__}.{place}", summary=summary) for name, place, summary in _TRANSFORMS
    ]
