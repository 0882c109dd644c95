"""IMPALA as a learner, with the settings that RLlib's has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.config import AlgorithmConfig, Schedule
from rlcore_plugin_learners.config_names import OF_IMPALA
from rlcore_plugin_learners.entropy import EntropyLearner
from rlcore_plugin_learners.episode_columns import EpisodeColumns
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.steps import Scheduled

if TYPE_CHECKING:
    from rlcore_plugin_learners.learner import Learner


@dataclass
class IMPALAConfig(AlgorithmConfig):
    """Settings of `IMPALATorchLearner`.

    Attributes:
        gamma: discount.
        rollout_fragment_length: rows of a fragment, which follow each other in the batch; the last one of each is
            that of its bootstrap value.
        vtrace_clip_rho_threshold: largest weight of the error of a step; None for none.
        vtrace_clip_pg_rho_threshold: largest weight of an advantage; None for none.
        vf_loss_coeff: weight of the critic's error, half of its square.
        entropy_coeff: weight of the entropy, or points as `lr` has them.
    """

    num_learners: int = 1
    lr: Schedule = 5e-4
    grad_clip: float | None = 40.0
    gamma: float = 0.99
    rollout_fragment_length: int = 50
    vtrace_clip_rho_threshold: float | None = 1.0
    vtrace_clip_pg_rho_threshold: float | None = 1.0
    vf_loss_coeff: float = 0.5
    entropy_coeff: Schedule = 0.01
    without_effect = OF_IMPALA

    def get_default_learner_class(self) -> type[Learner]:
        """Return `IMPALATorchLearner`."""
        return IMPALATorchLearner

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        super().validate()
        Scheduled(self.entropy_coeff, "entropy_coeff")
        length = self.rollout_fragment_length
        if type(length) is not int or length < 2:
            raise ConfigError(f"rollout_fragment_length is {length!r}; it takes whole numbers from 2 on")
        if self.minibatch_size is not None and self.minibatch_size % length:
            told = f"no multiple of rollout_fragment_length {length}"
            raise ConfigError(f"minibatch_size is {self.minibatch_size}, {told}")


class IMPALATorchLearner(EntropyLearner):
    """Actor-critic with the targets of V-trace (Espeholt et al., 2018, arXiv 1802.01561).

    Reads the columns `obs`, `actions`, `action_logp`, `rewards`, `terminateds` and `loss_mask`, which is false where a
    row has no step but the bootstrap value of the one before it; the modules return `action_dist_inputs`, and
    `vf_preds` or have `compute_values`. Rows are fragments of `rollout_fragment_length`, one after the other.
    Episodes are so many steps long that a row more makes them whole fragments.
    """

    _of_episodes = EpisodeColumns(one_more=True)

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the objective, the critic's error and the entropy, weighted and added.

        Raises:
            ConfigError: the rows are no whole fragments.
        """
        module: Any = self.module[module_id]
        policy = module.get_train_action_dist_cls().from_logits(fwd_out[Columns.ACTION_DIST_INPUTS])
        logp, entropies = policy.logp_and_entropy(batch[Columns.ACTIONS])
        values = self.values(module, batch, fwd_out)
        mask = batch[Columns.LOSS_MASK].float()
        targets, advantages = self._targets(config, batch, logp.detach(), values.detach(), mask)
        mean = mean_over(batch)
        policy_loss, vf_loss = -mean(logp * advantages), 0.5 * mean((values - targets).square())
        entropy = mean(entropies)
        logged = {"mean_pi_loss": policy_loss, "mean_vf_loss": vf_loss, "entropy": entropy}
        self.metrics.log_dict(logged, key=module_id)
        weight = self.entropy_weight(module_id, config)
        return policy_loss + config.vf_loss_coeff * vf_loss - weight * entropy  # type: ignore[no-any-return]

    def before_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Let the weight of the entropy follow its schedule, besides what every learner does."""
        super().before_gradient_based_update(timesteps=timesteps)
        self.follow_entropy(timesteps)

    def _targets(self, config: Any, batch: Any, logp: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return value targets and advantages of V-trace, `[row]`."""
        length = config.rollout_fragment_length
        if len(logp) % length:
            raise ConfigError(
                f"{len(logp)} rows are no whole fragments of rollout_fragment_length {length}, which each learner takes"
            )

        def by_fragment(column: Tensor) -> Tensor:
            return column.float().view(-1, length)

        ratio = by_fragment(logp - batch[Columns.ACTION_LOGP]).exp()
        value, reward = by_fragment(values), by_fragment(batch[Columns.REWARDS])
        discount = config.gamma * by_fragment(~batch[Columns.TERMINATEDS].bool()) * by_fragment(mask)
        # the discount of the last row of a fragment is 0, whatever comes after it
        after = torch.cat([value[:, 1:], torch.zeros_like(value[:, :1])], 1)
        error = _limited(ratio, config.vtrace_clip_rho_threshold) * (reward + discount * after - value)
        target = value + _discounted_sum(error, discount * ratio.clamp(max=1.0))
        target_after = torch.cat([target[:, 1:], torch.zeros_like(value[:, :1])], 1)
        weight = _limited(ratio, config.vtrace_clip_pg_rho_threshold)
        return target.flatten(), (weight * (reward + discount * target_after - value)).flatten()

    def _settings(self, epochs: int | None, size: int | None, shuffles: bool | None) -> tuple[int, int | None, bool]:
        """Return what an update was told, or else what the config says; fragments stay whole."""
        settings = super()._settings(epochs, size, shuffles)
        if settings[2]:
            raise ConfigError("shuffle_batch_per_epoch=True takes fragments apart, whose steps follow each other")
        return settings


def _discounted_sum(values: Tensor, discounts: Tensor) -> Tensor:
    """Return `s[t] = values[t] + discounts[t] * s[t + 1]` along rows `[fragment, time]`, in operations that compile."""
    sums = [torch.zeros_like(values[:, 0])]
    for value, discount in zip(values.unbind(1)[::-1], discounts.unbind(1)[::-1], strict=True):
        sums.append(value + discount * sums[-1])
    return torch.stack(sums[:0:-1], 1)


def _limited(ratio: Tensor, most: float | None) -> Tensor:
    return ratio if most is None else ratio.clamp(max=most)
