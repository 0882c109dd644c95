"""The hook that ends the epochs of a batch once the policy has moved far enough from the one that collected it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torch import Tensor

from rlcore import hookimpl
from rlcore.errors import EndOfEpoch


class KLStop:
    """Leaves out the remaining epochs of a batch after one whose last minibatch has `kl_approx` above a target.

    As CleanRL's PPO does (`if args.target_kl is not None and approx_kl > args.target_kl: break`, after each epoch), so
    the number is read from the device once per epoch. It has nothing to save: a batch ends before a checkpoint.

    Args:
        target: the KL divergence above which no further epoch begins.

    Attributes:
        internal: True; it belongs to the loss, and no figures of hooks speak of it.
    """

    internal: Final = True

    def __init__(self, target: float) -> None:
        self._target = target
        self._kl: Tensor | None = None
        self._stopped = False
        self._epochs = 0

    @hookimpl
    def pre_optim_steps(self) -> None:
        """Begin with a new batch."""
        self._kl, self._stopped, self._epochs = None, False, 0

    @hookimpl
    def process_optim_batch(self) -> None:
        """End an epoch that is not wanted.

        Raises:
            EndOfEpoch: the policy has moved far enough.
        """
        if self._stopped:
            raise EndOfEpoch

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, Tensor]) -> None:
        """Keep the divergence of the latest minibatch, on its device."""
        self._kl = metrics["kl_approx"]

    @hookimpl
    def post_epoch(self) -> None:
        """Decide whether another epoch begins."""
        if self._stopped:
            return
        self._epochs += 1
        self._stopped = self._kl is not None and float(self._kl) > self._target

    @hookimpl
    def post_steps_log(self) -> dict[str, float] | None:
        """Return how many epochs there were; nothing while frames are only collected."""
        epochs, self._epochs = self._epochs, 0
        return {"train/epochs": float(epochs)} if epochs else None
