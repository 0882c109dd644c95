"""What goes wrong with PPO as the metrics of a run show it; called by the hook `health` of its plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# how many times as large as the limit a gradient is; on CartPole it is up to 70 times, and PPO learns
_CLIPPED: Final = 150
# of the policy that an update leaves from the one that collected; of policies that learn it is 1e-4 and more
_STILL: Final = 1e-4


def crowded_out(row: Mapping[str, float], largest_reward: float, *, max_grad_norm: float | None) -> str | None:
    """Return a message where the critic's gradients, clipped with the actor's, leave the policy as it is.

    Args:
        row: metrics by name.
        largest_reward: absolute, so far.
        max_grad_norm: key of the learner; None for no limit.
    """
    norm, divergence = row.get("train/grad_norm"), row.get("train/kl_approx")
    if max_grad_norm is None or norm is None or divergence is None:
        return None
    if norm <= _CLIPPED * max_grad_norm or divergence >= _STILL:
        return None
    return (
        f"the policy stands still (kl_approx is {divergence:.1g}): gradients have a norm of {norm:.3g}, of which "
        f"[learner] max_grad_norm = {max_grad_norm:g} leaves one part in {norm / max_grad_norm:.0f}, the actor's too. "
        f"They are the critic's (loss_critic is {row.get('train/loss_critic', 0.0):.3g}): with rewards up to "
        f"{largest_reward:.3g} returns are too large. Add [[transform]] use = "
        '"transforms:reward-norm", with the gamma of the estimator'
    )
