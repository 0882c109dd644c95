"""Drops the steps of a batch that are only padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore_plugin_torchrl.hooks.entries import valid_mask

if TYPE_CHECKING:
    from tensordict import TensorDict


def mask_batch(batch: TensorDict) -> TensorDict:
    """Return the valid steps of a batch `[env, time]`, in one dimension; a batch without a mask comes back as it is.

    Register it with `trainer.register_op("batch_process", mask_batch)`.
    """
    mask = valid_mask(batch)
    return batch if mask is None else batch[mask]
