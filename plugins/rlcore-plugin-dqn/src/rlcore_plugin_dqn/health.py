"""What goes wrong with Q-learning as the metrics of a run show it; called by the hook `health` of its plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# a mean value above the largest possible return by this factor is no mere overestimation
_BEYOND: Final = 1.5
# of the range from v_min to v_max: values nearer to an end have most of their distribution on its last atom
_END: Final = 0.05


def growing_values(row: Mapping[str, float], largest_reward: float, *, gamma: float, error: str) -> str | None:
    """Return a message where values outgrow every possible return under an error that is linear.

    Args:
        row: metrics by name.
        largest_reward: absolute, so far.
        gamma: discount.
        error: key `error` of the loss.
    """
    value = row.get("train/q_value")
    if value is None or error == "l2" or not largest_reward > 0 or gamma >= 1:
        return None
    bound = largest_reward / (1 - gamma)
    if abs(value) <= _BEYOND * bound:
        return None
    return (
        f"q_value is {value:.3g} on average, and no return can be above {bound:.3g}, with rewards up to "
        f'{largest_reward:.3g} and gamma = {gamma:g}: error = "{error}" corrects a large error no more than a small '
        'one, so that values grow on their own estimates. Set [loss] error = "l2", or scale the rewards until '
        f'returns are near 1: [[transform]] use = "transforms:reward-scale", scale = {1 / bound:.1g}'
    )


def narrow_support(
    row: Mapping[str, float], largest_reward: float, *, gamma: float, v_min: float, v_max: float
) -> str | None:
    """Return a message where values lie at an end of the support, and rewards allow returns beyond it.

    Args:
        row: metrics by name.
        largest_reward: absolute, so far.
        gamma: discount.
        v_min: the lowest value of the support.
        v_max: the highest one.
    """
    value = row.get("train/q_value")
    if value is None or gamma >= 1:
        return None
    bound, margin = largest_reward / (1 - gamma), _END * (v_max - v_min)
    if value > v_max - margin and bound > _BEYOND * abs(v_max):
        key, end, wide = "v_max", v_max, bound
    elif value < v_min + margin and bound > _BEYOND * abs(v_min):
        key, end, wide = "v_min", v_min, -bound
    else:
        return None
    return (
        f"q_value is {value:.3g} on average, at the end of the values that the distributions can have ([model] "
        f"{key} = {end:g}): all returns beyond it count as {end:g}, so that good actions look alike. Set [model] "
        f"{key} = {wide:.3g}, which rewards up to {largest_reward:.3g} and gamma = {gamma:g} cannot exceed, or scale "
        "the rewards"
    )
