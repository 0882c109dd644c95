"""Means over the rows of a batch that its mask leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from rlcore_plugin_learners.columns import Columns


def mean_over(batch: Mapping[str, Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function for the mean of values `[row]`, over the rows where `loss_mask` is true, or all."""
    if Columns.LOSS_MASK not in batch:
        return Tensor.mean
    mask = batch[Columns.LOSS_MASK].float()
    rows = mask.sum()
    return lambda values: (values * mask).sum() / rows
