"""Numbers as distributions over bins that are symexp of a grid."""

from __future__ import annotations

from typing import Final

import torch
from rlcore_plugin_mlp.symlog import symexp, two_hot
from torch import Tensor

BINS: Final = 255
_REACH: Final = 20.0  # the outermost bin is symexp of it, 4.9e8


def symexp_bins(bins: int, device: torch.device | None = None) -> Tensor:
    """Return so many bins `[bin]`, ascending, of which the mirror image is the same to the bit.

    Args:
        bins: an odd number, so that 0 is one.
        device: of the result.
    """
    half = symexp(torch.linspace(-_REACH, 0, (bins + 1) // 2, device=device))
    return torch.cat([half, -half[:-1].flip(0)])


def expectation(logits: Tensor, bins: Tensor) -> Tensor:
    """Return the mean of a distribution over bins, `[...]`.

    Each bin above 0 counts by how much likelier it is than its mirror image, so that a uniform distribution has a mean
    of exactly 0.

    Args:
        logits: `[..., bin]`.
        bins: `[bin]`, symmetric about 0.
    """
    probs, middle = logits.softmax(-1), bins.shape[0] // 2
    return (probs[..., middle + 1 :] - probs[..., :middle].flip(-1)) @ bins[middle + 1 :]


def two_hot_loss(log_probs: Tensor, targets: Tensor, bins: Tensor) -> Tensor:
    """Return the cross entropies `[..., target]` to the two bins around each target, weighed by how near they are.

    A target beyond the outermost bin is that bin.

    Args:
        log_probs: log-probabilities of the bins, `[..., bin]`.
        targets: without gradient, `[..., target]`.
        bins: `[bin]`, ascending.
    """
    last = bins.shape[0] - 1
    above = torch.searchsorted(bins, targets.contiguous(), right=True).clamp(1, last)
    low, high = bins[above - 1], bins[above]
    upper_share = ((targets - low) / (high - low)).clamp(0, 1)
    return -two_hot(log_probs, above - 1, upper_share)
