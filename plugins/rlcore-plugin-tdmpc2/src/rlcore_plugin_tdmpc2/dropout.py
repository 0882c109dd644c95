"""What dropout leaves, sampled by the distances between the values that it leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def dropout_mask(shape: Sequence[int], rate: float, generator: torch.Generator) -> Tensor:
    """Return a mask of 0, each with probability `rate` and independent of the others, and else `1 / (1 - rate)`.

    The distances between zeros are geometric, so that one number is sampled for each zero, and not for each value.

    Args:
        shape: of the mask.
        rate: above 0 and below 1.
        generator: samples the distances.
    """
    size, device = math.prod(shape), generator.device
    mask = torch.full((size + 1,), 1 / (1 - rate), device=device)
    # ten standard deviations above the mean number of zeros: they end before the mask does in no run ever
    count = math.ceil(size * rate + 10 * math.sqrt(size * rate + 1) + 10)
    uniform = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
    distance = (torch.log1p(-uniform) / math.log1p(-rate)).floor() + 1
    place = distance.cumsum(0).sub_(1).clamp_(max=size).long()
    mask[place] = 0.0
    return mask[:size].view(*shape)
