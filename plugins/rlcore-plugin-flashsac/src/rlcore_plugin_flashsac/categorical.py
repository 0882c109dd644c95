"""Distributions of the return over atoms at equal distances."""

from __future__ import annotations

import torch
from torch import Tensor


def project(returns: Tensor, probs: Tensor, support: Tensor) -> Tensor:
    """Project distributions onto the support: each probability is split between the two nearest atoms.

    Algorithm 1 of C51 (Bellemare et al., 2017, arXiv 1707.06887).

    Args:
        returns: values of the distribution, `[sample, atom]`; those outside of the support move to its ends.
        probs: probabilities of these values, `[sample, atom]`.
        support: values at equal distances, `[atom]`.

    Returns:
        Probabilities `[sample, atom]`.
    """
    distance = support[1] - support[0]
    places = (returns.clamp(support[0], support[-1]) - support[0]) / distance
    if torch.compiler.is_compiling() or places.device.type != "cpu":
        # one pass for the compiler; on a GPU additions to one place would come in any order
        numbers = torch.arange(len(support), device=places.device, dtype=places.dtype)
        apart = (places.unsqueeze(-1) - numbers).abs()  # [sample, from, to]
        return (probs.unsqueeze(-1) * (1 - apart).clamp(min=0)).sum(-2)
    lower = places.floor().clamp(max=len(support) - 2)
    upper_share = places - lower
    index = lower.long()
    projected = torch.zeros_like(probs)
    projected.scatter_add_(-1, index, probs * (1 - upper_share))
    return projected.scatter_add_(-1, index + 1, probs * upper_share)


def soft_returns(
    reward: Tensor, discount: Tensor | float, going: Tensor, support: Tensor, entropy_cost: Tensor
) -> Tensor:
    """Return the values that the atoms of what follows have before a step, `r + discount (z - alpha log pi)`.

    As in FlashSAC (arXiv 2604.04539), the entropy is inside the target distribution.

    Args:
        reward: `[sample, 1]`, scaled.
        discount: of what follows, over one step or several joined ones.
        going: bool `[sample, 1]`; False after a terminated step, which nothing follows.
        support: `[atom]`.
        entropy_cost: the temperature times the log-density of the next action, `[sample, 1]`.

    Returns:
        `[sample, atom]`.
    """
    return reward + discount * going * (support - entropy_cost)


def of_least_mean(log_probs: Tensor, support: Tensor) -> Tensor:
    """Return for each sample the distribution of the critic with the least mean, `[sample, atom]`.

    Args:
        log_probs: `[critic, sample, atom]`.
        support: `[atom]`.
    """
    probs = log_probs.exp()
    if len(probs) == 1:
        return probs[0]
    least = (probs @ support).argmin(0)
    return probs.gather(0, least[None, :, None].expand(1, -1, probs.shape[-1]))[0]
