"""Where the episodes within sequences begin, as loops over time ask it."""

from __future__ import annotations

import torch
from torch import Tensor


def kept(first: Tensor, like: Tensor) -> Tensor:
    """Return the factors of the state before each step, `[time, sequence, 1]`: 0 where an episode begins, else 1."""
    return first.logical_not().to(like.dtype)


def reset_steps(first: Tensor) -> list[bool]:
    """Return for each time whether an episode begins in any sequence.

    On a CPU this is read, and the multiplications of the other steps are saved; elsewhere to read would be to wait for
    the device, so all steps are said to have one.
    """
    if first.device.type != "cpu":
        return [True] * len(first)
    return first.flatten(1).any(1).tolist()


def shifted(initial: Tensor, values: Tensor, keep: Tensor) -> Tensor:
    """Return what each step of `[time, sequence, size]` began with: the value before it, or 0 at a beginning."""
    return torch.cat([initial.unsqueeze(0), values[:-1]]).mul_(keep)
