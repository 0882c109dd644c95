"""Entries of a batch as arrays in which time comes first, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlcore.types import MASK

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Array, BoolArray


def rows(column: Any) -> Array:
    """Return a tensor `[env, time, 1]` as an array `[time, env]`."""
    array: Array = column.squeeze(-1).transpose(0, 1).cpu().numpy()
    return array


def column(array: Array, batch: TensorDict) -> Tensor:
    """Return an array `[time, env]` as a tensor `[env, time, 1]` on the device of a batch."""
    return torch.from_numpy(array).transpose(0, 1).unsqueeze(-1).to(batch["next", "done"].device)


def valid_steps(batch: TensorDict) -> BoolArray:
    """Return which steps of a batch count, `[time, env]`."""
    mask = batch.get(MASK, None)
    return np.ones(tuple(batch.batch_size)[::-1], dtype=bool) if mask is None else rows(mask)
