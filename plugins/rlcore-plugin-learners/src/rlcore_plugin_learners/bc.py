"""Behaviour cloning as a learner, with the settings that RLlib's has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.config import AlgorithmConfig, Schedule
from rlcore_plugin_learners.config_names import OF_BC
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.torch_learner import TorchLearner

if TYPE_CHECKING:
    from rlcore_plugin_learners.learner import Learner


@dataclass
class BCConfig(AlgorithmConfig):
    """Settings of `BCTorchLearner`."""

    lr: Schedule = 1e-4
    without_effect = OF_BC

    def get_default_learner_class(self) -> type[Learner]:
        """Return `BCTorchLearner`."""
        return BCTorchLearner


class BCTorchLearner(TorchLearner):
    """Behaviour cloning: actions of a batch become more likely.

    Reads the columns `obs`, `actions` and, where it is there, `loss_mask`; the modules return `action_dist_inputs`.
    """

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the mean of what actions lack in log-probability."""
        module: Any = self.module[module_id]
        policy = module.get_train_action_dist_cls().from_logits(fwd_out[Columns.ACTION_DIST_INPUTS])
        loss = -mean_over(batch)(policy.logp(batch[Columns.ACTIONS]))
        self.metrics.log_value((module_id, "policy_loss"), loss)
        return loss
