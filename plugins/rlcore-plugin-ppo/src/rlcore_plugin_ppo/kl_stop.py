"""The hook of `target_kl`, which leaves out epochs once the policy has moved too far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torch import Tensor

from rlcore import hookimpl
from rlcore.errors import EndOfEpoch


class KLStop:
    """Leaves out the remaining epochs of a batch once `kl_approx` of the last minibatch of an epoch is above a target.

    CleanRL's PPO stops in the same way after each epoch, so the number is read from the device once per epoch. The hook
    has no state to save: a batch ends before a checkpoint.

    Args:
        target: the KL divergence above which no further epoch begins.

    Attributes:
        internal: True; the hook is a part of the loss, and the figures of hooks leave it out.
    """

    internal: Final = True

    def __init__(self, target: float) -> None:
        self._target = target
        self._kl: Tensor | None = None
        self._stopped = False
        self._epochs = 0

    @hookimpl
    def pre_optim_steps(self) -> None:
        """Forget the divergence of the batch before."""
        self._kl, self._stopped, self._epochs = None, False, 0

    @hookimpl
    def process_optim_batch(self) -> None:
        """End an epoch before its first update, once the policy has moved too far.

        Raises:
            EndOfEpoch: it has.
        """
        if self._stopped:
            raise EndOfEpoch

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, Tensor]) -> None:
        """Keep the divergence of the latest minibatch on its device, as reading it would wait for the update."""
        self._kl = metrics["kl_approx"]

    @hookimpl
    def post_epoch(self) -> None:
        """Count the epoch, and decide whether the remaining ones are left out."""
        if self._stopped:
            return
        self._epochs += 1
        self._stopped = self._kl is not None and float(self._kl) > self._target

    @hookimpl
    def post_steps_log(self) -> dict[str, float] | None:
        """Return the number of epochs of the batch; nothing while frames are only collected."""
        epochs, self._epochs = self._epochs, 0
        return {"train/epochs": float(epochs)} if epochs else None
