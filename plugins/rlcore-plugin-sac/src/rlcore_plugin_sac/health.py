"""What goes wrong with SAC as the metrics of a run show it; called by the hook `health` of its plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# nats for each dimension of an action
_BELOW: Final = 0.25
# where a learned temperature begins
_INITIAL: Final = 1.0
# absolute: below it a reward is of a usual size
_LARGE: Final = 100.0
# absolute: the largest reward that the scale in the message leaves
_USUAL: Final = 10.0


def outweighed_entropy(
    row: Mapping[str, float], largest_reward: float, *, target_entropy: float, size: int
) -> str | None:
    """Return a message where rewards are so large that a growing temperature cannot keep the entropy at its target.

    Args:
        row: metrics by name.
        largest_reward: absolute, so far.
        target_entropy: nats.
        size: dimensions of an action.
    """
    entropy, temperature = row.get("train/entropy"), row.get("train/temperature")
    if entropy is None or temperature is None or largest_reward < _LARGE:
        return None
    if temperature <= _INITIAL or entropy >= target_entropy - _BELOW * size:
        return None
    return (
        f"entropy is {entropy:.3g} and falls short of target_entropy = {target_entropy:g}, though temperature grew to "
        f"{temperature:.3g}: with rewards up to {largest_reward:.3g} values outweigh the entropy, and the policy "
        f'explores too little. Scale the rewards: [[transform]] use = "transforms:reward-scale", scale = '
        f"{_USUAL / largest_reward:.1g}"
    )
