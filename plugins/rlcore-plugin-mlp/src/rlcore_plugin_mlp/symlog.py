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
    """Return the means `[..., pair]` of what two neighbouring bins have, with a gradient for it.

    Args:
        values: of the bins, such as their log-probabilities, `[..., bin]`.
        lower: numbers of the lower bins, int64 `[..., pair]`.
        upper_share: weights of the bins above them, between 0 and 1, `[..., pair]`.
    """
    # gathered together: the gradient of each gather is a tensor of all bins
    low, high = values.gather(-1, torch.cat([lower, lower + 1], -1)).chunk(2, -1)
    return torch.lerp(low, high, upper_share)
