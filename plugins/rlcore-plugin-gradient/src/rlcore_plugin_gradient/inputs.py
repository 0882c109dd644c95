"""What losses hand to the parts of a model and how they average, whether or not its policy has a state.

Decided once, when a loss is built: one for a policy without a state pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.types import FIRST, MASK, POLICY_STATE, Key, has_memory

Minibatch = Mapping[Key, Tensor]


def inputs_of(model: Any) -> Callable[[Minibatch], tuple[Tensor, ...]]:
    """Return what the parts of a model take of a minibatch: `part(*inputs(minibatch))`.

    Args:
        model: its parts take observations, and with memory the state and `first` too.
    """
    return _with_state if has_memory(model) else _observation


def mean_of(model: Any) -> Callable[[Tensor, Minibatch], Tensor]:
    """Return how values `[..., 1]` of the rows of a minibatch are averaged, to a 0-d tensor.

    With memory, minibatches are sequences, and rows whose mask is False do not count.
    """
    return _mean_of_counted if has_memory(model) else _mean


def _observation(minibatch: Minibatch) -> tuple[Tensor, ...]:
    return (minibatch["observation"],)


def _with_state(minibatch: Minibatch) -> tuple[Tensor, ...]:
    return minibatch["observation"], minibatch[POLICY_STATE], minibatch[FIRST]


def _mean(values: Tensor, minibatch: Minibatch) -> Tensor:
    return values.mean()


def _mean_of_counted(values: Tensor, minibatch: Minibatch) -> Tensor:
    if MASK not in minibatch:
        return values.mean()
    mask = minibatch[MASK]
    return torch.where(mask, values, 0).sum() / mask.sum().clamp(min=1)
