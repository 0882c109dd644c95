"""DQN as a learner, with the settings that RLlib's has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from rlcore_plugin_dqn.distributional import project
from rlcore_plugin_dqn.network import of_action
from torch import Tensor, nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_learners.apis import QNetAPI, TargetNetworkAPI
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.config import AlgorithmConfig, Schedule
from rlcore_plugin_learners.config_names import OF_DQN
from rlcore_plugin_learners.dqn_module import DefaultDQNTorchRLModule
from rlcore_plugin_learners.episode_columns import EpisodeColumns
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.module import RLModuleSpec
from rlcore_plugin_learners.q_learning import (
    ATOMS,
    QF_LOGITS,
    QF_NEXT_PREDS,
    QF_PREDS,
    QF_PROBS,
    QF_TARGET_NEXT_PREDS,
    QF_TARGET_NEXT_PROBS,
    TD_ERROR,
    discounts,
    weighted,
)
from rlcore_plugin_learners.targets import TargetLearner, check_targets

if TYPE_CHECKING:
    from rlcore_plugin_learners.learner import Learner

_ERRORS = {"huber": nn.functional.smooth_l1_loss, "mse": nn.functional.mse_loss}


@dataclass
class DQNConfig(AlgorithmConfig):
    """Settings of `DQNTorchLearner`.

    Attributes:
        gamma: discount.
        target_network_update_freq: sampled steps between two moves of the target network.
        tau: how far it moves; 1 copies.
        double_q: whether the network chooses the next action, which its target values.
        dueling: whether the network that is built by default has a stream for the value of the state.
        num_atoms: values of which each action has a distribution; 1 for plain values.
        v_min: the lowest of these values.
        v_max: the highest of these values.
        td_error_loss_fn: `huber` or `mse`, for plain values.
    """

    lr: Schedule = 5e-4
    grad_clip: float | None = 40.0
    gamma: float = 0.99
    target_network_update_freq: int = 500
    tau: float = 1.0
    double_q: bool = True
    dueling: bool = True
    num_atoms: int = 1
    v_min: float = -10.0
    v_max: float = 10.0
    td_error_loss_fn: Literal["huber", "mse"] = "huber"
    without_effect = OF_DQN

    def get_default_learner_class(self) -> type[Learner]:
        """Return `DQNTorchLearner`."""
        return DQNTorchLearner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return the spec of a Q-network."""
        return RLModuleSpec(DefaultDQNTorchRLModule)

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        names = ("double_q", "dueling", "epsilon", "num_atoms", "v_max", "v_min")
        return {"std_init": self.sigma0, **{name: getattr(self, name) for name in names}}

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        super().validate()
        check_targets(self)
        if self.td_error_loss_fn not in _ERRORS:
            guess = did_you_mean(self.td_error_loss_fn, _ERRORS)
            raise ConfigError(f"td_error_loss_fn is {self.td_error_loss_fn!r}; it takes huber or mse{guess}")
        if type(self.num_atoms) is not int or self.num_atoms < 1:
            raise ConfigError(f"num_atoms is {self.num_atoms!r}; it takes whole numbers from 1 on")
        if self.num_atoms > 1 and not self.v_min < self.v_max:
            raise ConfigError(f"v_min is {self.v_min!r} and v_max {self.v_max!r}; v_min is less")


class DQNTorchLearner(TargetLearner):
    """DQN (Mnih et al., 2015), double (van Hasselt et al., 2016), with distributions (Bellemare et al., 2017).

    Reads the columns `obs`, `new_obs`, `actions`, `rewards` and `terminateds`; where they are there, also `weights`,
    `loss_mask` and `n_step`: how many steps `rewards` are of. The modules return what `DefaultDQNTorchRLModule` does.
    Results have the absolute error of each row, `td_error`, for a buffer with priorities.
    """

    _of_episodes = EpisodeColumns(next_obs=True)

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        """Return classes that a module has to be of."""
        return [QNetAPI, TargetNetworkAPI]

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the error of the values of the actions taken, or the divergence of their distributions."""
        first = getattr(self.module[module_id].action_space, "start", 0)
        action = (batch[Columns.ACTIONS].long() - first).unsqueeze(-1)
        following = fwd_out[QF_TARGET_NEXT_PREDS]
        best = fwd_out[QF_NEXT_PREDS if config.double_q else QF_TARGET_NEXT_PREDS].argmax(-1, keepdim=True)
        value, discount = _of(fwd_out[QF_PREDS], action), discounts(config, batch)
        mean = mean_over(batch)
        if config.num_atoms > 1:
            probs, atoms = of_action(fwd_out[QF_TARGET_NEXT_PROBS], best), fwd_out[ATOMS]
            returns = batch[Columns.REWARDS].unsqueeze(-1) + discount.unsqueeze(-1) * atoms
            logits = of_action(fwd_out[QF_LOGITS][: len(action)], action)
            target = project(returns, probs, atoms).detach()
            td_error = errors = nn.functional.cross_entropy(logits, target, reduction="none")
            self._log_distributions(module_id, fwd_out[QF_PROBS], atoms)
        else:
            target = (batch[Columns.REWARDS] + discount * _of(following, best)).detach()
            errors = _ERRORS[config.td_error_loss_fn](value, target, reduction="none")
            td_error = (value - target).abs()
        loss = mean(weighted(errors, batch))
        logged = {"qf_loss": loss, "qf_mean": mean(value), "td_error_mean": mean(td_error)}
        self.metrics.log_dict(logged, key=module_id)
        counted = batch.get(Columns.LOSS_MASK, torch.ones_like(value)).bool()
        self.metrics.log_value((module_id, "qf_max"), value.where(counted, -torch.inf).amax(), reduce="max")
        self.metrics.log_value((module_id, "qf_min"), value.where(counted, torch.inf).amin(), reduce="min")
        self.metrics.log_value((module_id, TD_ERROR), td_error, reduce="item_series")
        return loss

    def _log_distributions(self, module_id: str, probs: Tensor, atoms: Tensor) -> None:
        """Log how far the mean distributions of actions `[row, action, atom]` are from each other."""
        by_action = probs.detach().mean(0)
        between = by_action.diff(dim=0).abs()
        logged = {
            ATOMS: atoms.mean(),
            "expectations_abs_diff": (by_action @ atoms).diff().mean().abs(),
            "dist_total_variation_dist": 0.5 * between.sum(),
            "dist_max_abs_distance": between.max(),
            "action_dist_mean_entropy": torch.special.xlogy(by_action, by_action).sum(1).mean(),
        }
        self.metrics.log_dict(logged, key=module_id)


def _of(values: Tensor, action: Tensor) -> Tensor:
    """Return the value of each row's action, `[row]`; a forbidden one, at -inf, counts as 0."""
    value = values.gather(-1, action).squeeze(-1)
    return value.masked_fill(value == -torch.inf, 0.0)
