"""Proximal policy optimisation as a learner, with the settings that RLlib's has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_learners.advantages import with_advantages
from rlcore_plugin_learners.batches import ModuleBatch, MultiBatch
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.config import AlgorithmConfig, Schedule
from rlcore_plugin_learners.config_names import SCHEDULES
from rlcore_plugin_learners.entropy import EntropyLearner
from rlcore_plugin_learners.episode_columns import EpisodeColumns
from rlcore_plugin_learners.kl import KL, KLLearner
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.steps import Scheduled

if TYPE_CHECKING:
    from rlcore_plugin_learners.learner import Learner


@dataclass
class PPOConfig(AlgorithmConfig):
    """Settings of `PPOTorchLearner`.

    Attributes:
        clip_param: how far the probability of an action may move from that of the policy that collected.
        use_kl_loss: whether to punish the distance from that policy.
        kl_coeff: weight of it, at first; it follows `kl_target`.
        kl_target: the distance that is aimed at.
        vf_loss_coeff: weight of the critic's squared error.
        vf_clip_param: largest squared error of a row.
        entropy_coeff: weight of the entropy, or points as `lr` has them.
    """

    lr: Schedule = 5e-5
    clip_param: float = 0.3
    use_kl_loss: bool = True
    kl_coeff: float = 0.2
    kl_target: float = 0.01
    vf_loss_coeff: float = 1.0
    vf_clip_param: float = 10.0
    entropy_coeff: Schedule = 0.0
    without_effect = SCHEDULES

    def get_default_learner_class(self) -> type[Learner]:
        """Return `PPOTorchLearner`."""
        return PPOTorchLearner

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        super().validate()
        Scheduled(self.entropy_coeff, "entropy_coeff")
        for name in ("clip_param", "kl_coeff", "kl_target", "vf_loss_coeff", "vf_clip_param"):
            if type(getattr(self, name)) not in (int, float):
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it takes a number")


class PPOTorchLearner(KLLearner, EntropyLearner):
    """PPO (Schulman et al., 2017, arXiv 1707.06347).

    Reads the columns `obs`, `actions`, `action_logp`, `advantages` and `value_targets`; the modules return
    `action_dist_inputs`, and `vf_preds` or have `compute_values`. The distance from the policy that collected is exact
    where the batch has its `action_dist_inputs`; else it is estimated from the actions, `ratio - 1 - log(ratio)`. Rows
    where a column `loss_mask` is false count for nothing. Of episodes it estimates advantages and value targets itself.
    """

    _of_episodes = EpisodeColumns(one_more=True)

    def _completed(self, data: MultiBatch) -> MultiBatch:
        """Return columns with advantages, where rows are those of episodes."""
        return {module_id: self._estimated(module_id, columns) for module_id, columns in data.items()}

    def _estimated(self, module_id: str, columns: ModuleBatch) -> ModuleBatch:
        module = self.module.get(module_id)
        if Columns.ADVANTAGES in columns or Columns.TRUNCATEDS not in columns or not hasattr(module, "compute_values"):
            return columns
        return with_advantages(columns, module, self.config.get_config_for_module(module_id))

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the clipped objective, the critic's error, the entropy and the distance, weighted and added."""
        module: Any = self.module[module_id]
        policy = module.get_train_action_dist_cls().from_logits(fwd_out[Columns.ACTION_DIST_INPUTS])
        logp, entropies = policy.logp_and_entropy(batch[Columns.ACTIONS])
        log_ratio = logp - batch[Columns.ACTION_LOGP]
        mean = mean_over(batch)
        ratio, advantages = log_ratio.exp(), batch[Columns.ADVANTAGES]
        clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
        policy_loss = -mean(torch.minimum(advantages * ratio, advantages * clipped))
        errors = (self.values(module, batch, fwd_out) - batch[Columns.VALUE_TARGETS]).square()
        vf_loss = mean(errors.clamp(max=config.vf_clip_param))
        entropy = mean(entropies)
        loss = policy_loss + config.vf_loss_coeff * vf_loss - self.entropy_weight(module_id, config) * entropy
        logged = {"policy_loss": policy_loss, "vf_loss": vf_loss, "entropy": entropy}
        if config.use_kl_loss:
            if Columns.ACTION_DIST_INPUTS in batch:
                before = module.get_exploration_action_dist_cls().from_logits(batch[Columns.ACTION_DIST_INPUTS])
                distance = mean(before.kl(policy))
            else:
                distance = mean(ratio - 1 - log_ratio)
            loss = loss + self.curr_kl_coeffs_per_module[module_id] * distance
            self.metrics.log_value((module_id, KL), distance, reduce="item")
        self.metrics.log_dict(logged, key=module_id)
        return loss  # type: ignore[no-any-return]

    def after_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Let the weights of the distance and the entropy follow, besides what every learner does."""
        super().after_gradient_based_update(timesteps=timesteps)
        self.follow_entropy(timesteps)
        self.follow_kl()
