"""The hook that moves the learning rate by the divergence of each update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from rlcore import hookimpl
from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from rlcore import Context

_FACTOR: Final = 1.5


class AdaptiveRate:
    """Divides the learning rates by 1.5 where `kl_approx` is above twice a target, and multiplies them below its half.

    It is the rule of rsl_rl. The divergence of an update is that before its step, and the rate that follows from it
    counts from the next step on. The rates are in the optimizers, and saved with them.

    Args:
        desired: the divergence to keep to.
        least: the smallest rate.
        most: the largest rate.
        context: of the loss; several ranks take the mean of their divergences.

    Attributes:
        internal: True; the hook is a part of the loss, and the figures of hooks leave it out.
    """

    internal: Final = True

    def __init__(self, desired: float, least: float, most: float, context: Context) -> None:
        self._desired, self._least, self._most = desired, least, most
        self._context = context

    @hookimpl
    def setup(self) -> None:
        """Refuse schedules of the learning rate.

        Raises:
            ConfigError: there is one.
        """
        if any(scheduler.target.rpartition(".")[2] == "lr" for scheduler in self._context.schedulers):
            raise ConfigError(
                "[[scheduler]] moves the learning rate, and [loss] desired_kl does too; leave one of them out (a loss "
                "without it: use = 'ppo')"
            )

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, Tensor], learner: Any) -> None:
        """Move the rates."""
        divergence = self._over_ranks(metrics["kl_approx"])
        if divergence > 2 * self._desired:
            for group in self._groups(learner):
                group["lr"] = max(self._least, group["lr"] / _FACTOR)
        elif 0 < divergence < self._desired / 2:
            for group in self._groups(learner):
                group["lr"] = min(self._most, group["lr"] * _FACTOR)

    def _over_ranks(self, divergence: Tensor) -> float:
        group = self._context.group
        if group.size == 1:
            return float(divergence)
        total = divergence.detach().reshape(1).to(torch.float32, copy=True)
        group.sum_(total)
        return float(total) / group.size

    @staticmethod
    def _groups(learner: Any) -> list[dict[str, float]]:
        return [group for optimizer in learner.optimizers.values() for group in optimizer.param_groups]
