"""Numbers as distributions over bins, in symlog space: two-hot targets, their cross-entropy, and the way back."""

from __future__ import annotations

import torch
from rlcore_plugin_mlp.symlog import symexp, symlog, two_hot
from torch import Tensor


class TwoHot:
    """Bins at equal distances in symlog space.

    Args:
        bins: how many, at least 2.
        low: `symlog` of the least number.
        high: `symlog` of the largest one.

    Attributes:
        bins: as given.
    """

    def __init__(self, bins: int, low: float, high: float) -> None:
        self.bins = bins
        self._low, self._high = low, high
        self._width = (high - low) / (bins - 1)

    def values(self, logits: Tensor) -> Tensor:
        """Return the numbers `[..., 1]` that logits `[..., bin]` stand for: `symexp` of the mean bin."""
        bins = torch.linspace(self._low, self._high, self.bins, device=logits.device, dtype=logits.dtype)
        return symexp((logits.softmax(-1) * bins).sum(-1, keepdim=True))

    def cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return `[..., 1]`: of logits `[..., bin]`, to the two bins beside each target `[..., 1]`.

        A target has the nearer of the two bins with the larger part; beyond the last bins it has the last one.
        """
        place = (symlog(targets).clamp(self._low, self._high) - self._low) / self._width
        lower = place.floor().clamp(max=self.bins - 2)
        upper_part = place - lower
        bin_number = lower.long().expand(*logits.shape[:-1], 1)
        return logits.logsumexp(-1, keepdim=True) - two_hot(logits, bin_number, upper_part)
