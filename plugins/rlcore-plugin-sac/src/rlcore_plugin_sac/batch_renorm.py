"""Batch renormalisation of one network, or of several that run as one batched network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

R_MAX: Final = 3.0
D_MAX: Final = 5.0
EPS: Final = 1e-3


class BatchRenorm(nn.Module):
    """Normalises features by the batch, corrected towards running statistics (Ioffe, 2017, arXiv 1702.03275).

    Algorithm 1 of the paper, as CrossQ uses it (Bhatt et al., 2024, arXiv 1902.05605): `r` and `d` are 1 and 0 during
    the warm-up, which makes it batch normalisation, and clipped at 3 and 5 afterwards. The gradient of the batch's
    statistics is followed, that of `r` and `d` is not. The running variance is that of the unbiased estimate, as
    torch's batch normalisation keeps it. The statistics are buffers, changed in place by `forward(..., update=True)`:
    a mode of the module says nothing, so that one update can use both ways.

    Args:
        features: size of the last dimension.
        copies: networks in one, whose inputs are `[copy, sample, feature]`; None for one network.
        momentum: how far an update moves the running statistics to those of the batch.
        warmup: updates of plain batch normalisation.
    """

    scale: Tensor
    shift: Tensor
    running_mean: Tensor
    running_var: Tensor
    updates: Tensor

    def __init__(self, features: int, copies: int | None = None, momentum: float = 0.01, warmup: int = 100_000) -> None:
        super().__init__()
        shape = (features,) if copies is None else (copies, 1, features)
        self._batched = copies is not None
        self._momentum = momentum
        self._warmup = warmup
        self.scale = nn.Parameter(torch.ones(shape))
        self.shift = nn.Parameter(torch.zeros(shape))
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_var", torch.ones(shape))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: Tensor, update: bool = False, take: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Return normalised inputs.

        Args:
            inputs: `[copy, sample, feature]`, or `[..., feature]` for one network.
            update: by the statistics of this batch, which also move the running ones; False, or of a single sample,
                which has none: by the running ones alone, and nothing changes.
            take: applied to the weights, as to have no gradient for them.
        """
        scale, shift = (self.scale, self.shift) if take is None else (take(self.scale), take(self.shift))
        samples = inputs.shape[-2] if self._batched else inputs[..., 0].numel()
        if not update or samples < 2:
            # what multiplies a weight must be no buffer itself: a later update would change it before the backward
            slope = (self.running_var + EPS).rsqrt()
            return torch.addcmul(shift - self.running_mean * slope * scale, inputs, slope * scale)
        over = [-2] if self._batched else list(range(inputs.ndim - 1))
        variance, mean = torch.var_mean(inputs, over, correction=0, keepdim=self._batched)
        deviation = (variance + EPS).sqrt()
        with torch.no_grad():
            r, d = self._correction(mean, deviation)
        normalised = (inputs - mean) * (r / deviation) + d
        self._move(mean.detach(), variance.detach(), samples)
        return torch.addcmul(shift, normalised, scale)

    def affine(self) -> tuple[Tensor, Tensor]:
        """Return the scale and the shift that `forward` without update applies now."""
        scale = self.scale * (self.running_var + EPS).rsqrt()
        return scale, self.shift - self.running_mean * scale

    def _correction(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        running = (self.running_var + EPS).sqrt()
        warm = self.updates >= self._warmup
        r = (deviation / running).clamp(1 / R_MAX, R_MAX)
        d = ((mean - self.running_mean) / running).clamp(-D_MAX, D_MAX)
        return torch.where(warm, r, 1.0), torch.where(warm, d, 0.0)

    @torch.no_grad()
    def _move(self, mean: Tensor, variance: Tensor, samples: int) -> None:
        unbiased = variance * (samples / (samples - 1))
        self.running_mean.lerp_(mean, self._momentum)
        self.running_var.lerp_(unbiased, self._momentum)
        self.updates.add_(1)
