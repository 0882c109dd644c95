"""The loss of TQC."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import Field
from rlcore_plugin_dqn.distributional import quantile_huber
from rlcore_plugin_sac.loss import mean_value, sum_of_means
from rlcore_plugin_sac.sac import SACLoss
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key


class TQCLoss(SACLoss):
    """Truncated quantile critics (Kuznetsov et al., 2020, arXiv 2005.04269).

    `loss_critics` is the quantile Huber loss of equations 13 and 14, a mean over samples, critics and quantiles. The
    target has the quantiles of all critics, or of `target_subset` of them, sorted and without the largest ones,
    `dropped` for each critic (equations 11 and 12). The actor maximises the mean of all quantiles (equation 15).
    Everything else is as in `rlcore_plugin_sac.sac.SACLoss`; `td_error` `[sample, 1]` is the largest loss of a critic.

    Raises:
        ConfigError: the critics give values; or no quantile is left for the target.
    """

    takes_quantiles = True

    class Config(SACLoss.Config):
        """TQC."""

        dropped: int = Field(2, ge=0, description="quantiles that the target leaves out for each critic, the largest")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        quantiles = self._quantiles
        if quantiles == 1:
            raise ConfigError("[loss] tqc needs critics that give quantiles; set [model] quantiles = 25")
        if config.dropped >= quantiles:
            raise ConfigError(
                f"[loss] dropped = {config.dropped} must be less than [model] quantiles = {quantiles}, so that some "
                "are left for the target"
            )
        self._kept = quantiles - config.dropped
        self._fractions = (torch.arange(quantiles, device=context.device) + 0.5) / quantiles

    def _of_target(self, values: Tensor) -> Tensor:
        pooled = values.transpose(0, 1).flatten(1)
        return pooled.sort(-1).values[:, : self._kept * len(values)]

    def _of_actor(self, values: Tensor) -> Tensor:
        return values.mean((0, 2)).unsqueeze(-1)

    def _critics_loss(self, minibatch: Mapping[Key, Tensor], target: Tensor) -> dict[str, Tensor]:
        """Return the loss and its metrics.

        Args:
            minibatch: entries.
            target: quantiles, `[sample, number]`.
        """
        values = self._values(minibatch)
        count, samples, quantiles = values.shape
        sums = quantile_huber(values.flatten(0, 1), target.repeat(count, 1), self._fractions, 1.0)
        errors = sums.view(count, samples, 1) / quantiles
        return {
            "loss_critics": sum_of_means(errors, minibatch) / count,
            "q_value": mean_value(values.detach().mean(-1, keepdim=True), minibatch),
            "td_error": errors.detach().amax(0),
        }
