"""Numbers of any size for networks: symlog and symexp, and what lies between two bins."""

from __future__ import annotations

import torch
from torch import Tensor


def symlog(values: Tensor) -> Tensor:
    """Return `sign(x) log(1 + |x|)`."""
    return values.sign() * values.abs().log1p()


def symexp(values: Tensor) -> Tensor:
    """Return `sign(x) (exp(|x|) - 1)`, the inverse of `symlog`."""
    return values.sign() * values.abs().expm1()


def two_hot(values: Tensor, lower: Tensor, upper_share: Tensor) -> Tensor:
    """Return the mean `[..., 1]` of what two neighbouring bins have, with a gradient for it.

    Args:
        values: of the bins, such as their log-probabilities, `[..., bin]`.
        lower: number of the lower bin, int64 `[..., 1]`.
        upper_share: weight of the bin above it, between 0 and 1, `[..., 1]`.
    """
    # gathered together: the gradient of each gather is a tensor of all bins
    both = values.gather(-1, torch.cat([lower, lower + 1], -1))
    return torch.lerp(both[..., :1], both[..., 1:], upper_share)
