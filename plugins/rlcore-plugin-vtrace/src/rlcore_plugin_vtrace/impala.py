"""The loss of IMPALA."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from rlcore_plugin_ppo.loss import A2CLoss
from torch import Tensor

from rlcore.types import Key
from rlcore_plugin_vtrace.old_policy import OLD_LOG_PROB


class IMPALALoss(A2CLoss):
    """Actor-critic with the advantages and value targets of V-trace (Espeholt et al., 2018, arXiv 1802.01561).

    Reads `observation`, `action`, `sample_log_prob`, `old_log_prob`, `advantage`, `value_target`. Returns
    `loss_objective`, `loss_critic`, `loss_entropy` and the metrics `entropy`, `kl_approx` (from the policy that chose
    the actions: mean of ratio - 1 - log ratio) and `importance_weight` (the mean of V-trace, before it is clipped).
    """

    reads = (*A2CLoss.reads, "sample_log_prob", OLD_LOG_PROB)

    def _objective(self, log_prob: Tensor, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        objective, _ = super()._objective(log_prob, minibatch)
        with torch.no_grad():
            chosen = minibatch["sample_log_prob"]
            log_ratio = log_prob - chosen
            metrics = {
                "kl_approx": self._mean(log_ratio.exp() - 1 - log_ratio, minibatch),
                "importance_weight": self._mean((minibatch[OLD_LOG_PROB] - chosen).exp(), minibatch),
            }
        return objective, metrics
