"""The loss of APPO: PPO over batches of earlier policies."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from pydantic import Field
from rlcore_plugin_ppo.loss import PPOLoss
from torch import Tensor, nn

from rlcore.types import Context, Key
from rlcore_plugin_vtrace.old_policy import OLD_LOG_PROB, OldPolicy


class APPOLoss(PPOLoss):
    """PPO's objective with V-trace, clipped around an old policy (IMPACT; Luo et al., 2020, arXiv 1912.00167, sec. 3).

    The ratio of the objective is `pi / max(pi_old, mu / importance_clip)`, where `mu` chose the actions: the objective
    may not go far from `pi_old`, and what `mu` did often and `pi_old` hardly ever does gets no huge ratio. The weights
    of V-trace, of `pi_old` over `mu`, are in the advantages. Returns what `PPOLoss` does, by this ratio, and the metric
    `importance_weight`: the mean of `pi_old / mu`.

    Attributes:
        target_updater: moves the old policy, called by the learner; None without a target network.
    """

    reads = (*PPOLoss.reads, OLD_LOG_PROB)

    class Config(PPOLoss.Config):
        """PPO, and what its old policy is."""

        target_network: bool = Field(
            True, description="the old policy is a copy that follows; false: the one of the time of the estimate"
        )
        target_interval: int = Field(8, ge=1, description="optimisation steps between two updates of the copy")
        target_tau: float = Field(1.0, gt=0, le=1, description="how far an update moves the copy: 1 copies")
        importance_clip: float = Field(
            2.0, ge=1, description="largest ratio of the policy that chose an action to the old policy"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._log_clip = math.log(config.importance_clip)
        self.target_updater: OldPolicy | None = None
        if config.target_network:
            self.target_updater = OldPolicy(self.actor, config.target_interval, config.target_tau)

    def old_policy(self) -> nn.Module | None:
        """Return the target network; None where the old policy is the one of the time of the estimate."""
        return None if self.target_updater is None else self.target_updater.actor()

    def _objective(self, log_prob: Tensor, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        objective, metrics = super()._objective(log_prob, minibatch)
        with torch.no_grad():
            weight = (minibatch[OLD_LOG_PROB] - minibatch["sample_log_prob"]).exp()
            metrics["importance_weight"] = self._mean(weight, minibatch)
        return objective, metrics

    def _log_prob_before(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        return torch.maximum(minibatch[OLD_LOG_PROB], minibatch["sample_log_prob"] - self._log_clip)
