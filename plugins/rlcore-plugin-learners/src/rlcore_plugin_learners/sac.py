"""SAC as a learner, with the settings that RLlib's has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore_plugin_learners.apis import QNetAPI, TargetNetworkAPI
from rlcore_plugin_learners.batches import ModuleBatch, MultiBatch
from rlcore_plugin_learners.columns import ALL_MODULES, Columns
from rlcore_plugin_learners.config import AlgorithmConfig, Schedule
from rlcore_plugin_learners.config_names import OF_SAC
from rlcore_plugin_learners.episode_columns import EpisodeColumns
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.module import RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.q_learning import QF_PREDS, TD_ERROR, discounts, weighted
from rlcore_plugin_learners.sac_module import (
    ACTION_LOG_PROBS,
    ACTION_LOG_PROBS_NEXT,
    ACTION_PROBS,
    ACTION_PROBS_NEXT,
    LOGP,
    LOGP_NEXT,
    NEXT_NOISE,
    NOISE,
    Q_CURR,
    QF_TARGET_NEXT,
    QF_TWIN_PREDS,
    DefaultSACTorchRLModule,
)
from rlcore_plugin_learners.steps import Scheduled
from rlcore_plugin_learners.targets import TargetLearner, check_targets

if TYPE_CHECKING:
    from rlcore_plugin_learners.learner import Learner

_LOG_ALPHAS: Final = "curr_log_alpha"


@dataclass
class SACConfig(AlgorithmConfig):
    """Settings of `SACTorchLearner`.

    Attributes:
        gamma: discount.
        twin_q: whether there are two critics, of which the lesser counts.
        tau: how far the targets of the critics move; 1 copies.
        target_network_update_freq: sampled steps between two moves.
        initial_alpha: weight of the entropy, at first.
        target_entropy: that is aimed at; `auto` is minus the number of actions.
        actor_lr: learning rate of the actor, or points as `AlgorithmConfig.lr` has them; likewise the next two.
        critic_lr: of the critics.
        alpha_lr: of the logarithm of the weight of the entropy.
    """

    lr: Schedule | None = None  # type: ignore[assignment]
    gamma: float = 0.99
    twin_q: bool = True
    tau: float = 5e-3
    target_network_update_freq: int = 0
    initial_alpha: float = 1.0
    target_entropy: float | str | None = "auto"
    actor_lr: Schedule = 3e-5
    critic_lr: Schedule = 3e-4
    alpha_lr: Schedule = 3e-4
    without_effect = OF_SAC

    def get_default_learner_class(self) -> type[Learner]:
        """Return `SACTorchLearner`."""
        return SACTorchLearner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return the spec of an actor with critics."""
        return RLModuleSpec(DefaultSACTorchRLModule)

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {"twin_q": self.twin_q}

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        super().validate()
        check_targets(self)
        for name in ("actor_lr", "critic_lr", "alpha_lr"):
            Scheduled(getattr(self, name), name)
        if not self.initial_alpha > 0:
            raise ConfigError(f"initial_alpha is {self.initial_alpha!r}; it is above 0")
        if self.target_entropy not in (None, "auto") and not isinstance(self.target_entropy, int | float):
            raise ConfigError(f"target_entropy is {self.target_entropy!r}; it takes auto or a number")


class SACTorchLearner(TargetLearner):
    """Soft actor-critic (Haarnoja et al., 2018, arXiv 1812.05905), for bounded boxes and for discrete actions.

    Reads the columns of `DQNTorchLearner`. The modules have the networks `pi_encoder`, `pi`, `qf_encoder`, `qf`, and
    with `twin_q` `qf_twin_encoder` and `qf_twin`, and return what `DefaultSACTorchRLModule` does. There is an optimizer
    for each critic, the actor and the weight of the entropy; each steps by its own loss, so that the sum of them, which
    is returned, counts for the results alone.

    Attributes:
        curr_log_alpha: logarithm of the weight of the entropy by module, `[1]`.
        target_entropy: the entropy that is aimed at by module, 0-d tensors.
    """

    _of_episodes = EpisodeColumns(next_obs=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.curr_log_alpha: dict[str, Tensor] = {}
        self.target_entropy: dict[str, Tensor] = {}
        self._own_losses: dict[tuple[str, str], Tensor] = {}

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        """Return classes that a module has to be of."""
        return [QNetAPI, TargetNetworkAPI]

    def _begin_module(self, module_id: str) -> None:
        super()._begin_module(module_id)
        config: Any = self.config.get_config_for_module(module_id)
        log_alpha = torch.tensor([math.log(config.initial_alpha)], device=self.device)
        self.curr_log_alpha[module_id] = log_alpha.requires_grad_()
        target = torch.tensor(float(self._get_target_entropy(module_id)), device=self.device)
        self.target_entropy[module_id] = target

    def _get_target_entropy(self, module_id: str) -> float:
        """Return the entropy that is aimed at."""
        config: Any = self.config.get_config_for_module(module_id)
        if config.target_entropy not in (None, "auto"):
            return float(config.target_entropy)
        space: Any = self.module[module_id].action_space
        return -float(math.prod(space.shape))

    def configure_optimizers_for_module(self, module_id: str, config: Any) -> None:
        """Register Adam for each critic, the actor and the weight of the entropy."""
        module: Any = self.module[module_id]
        parts = {"qf": (module.qf_encoder, module.qf), "policy": (module.pi_encoder, module.pi)}
        if config.twin_q:
            parts["qf_twin"] = (module.qf_twin_encoder, module.qf_twin)
        moved = {name: [p for part in several for p in self.get_parameters(part)] for name, several in parts.items()}
        moved["alpha"] = [self.curr_log_alpha[module_id]]
        rates = {"policy": config.actor_lr, "alpha": config.alpha_lr}
        for name in ("qf", "qf_twin", "policy", "alpha"):
            if name in moved:
                self.register_optimizer(
                    module_id=module_id,
                    optimizer_name=name,
                    optimizer=torch.optim.Adam(moved[name], eps=1e-7),
                    params=moved[name],
                    lr_or_lr_schedule=rates.get(name, config.critic_lr),
                )

    def remove_module(self, module_id: str, **kwargs: Any) -> MultiRLModuleSpec:
        """Take a module out, with what belongs to it, and return how to build what is left."""
        left = super().remove_module(module_id, **kwargs)
        self.curr_log_alpha.pop(module_id, None)
        self.target_entropy.pop(module_id, None)
        return left

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the sum of the losses, and keep each of them for its optimizer."""
        is_discrete = isinstance(self.module[module_id].action_space, gymnasium.spaces.Discrete)
        compute = self._compute_loss_for_module_discrete if is_discrete else self._compute_loss_for_module_continuous
        return compute(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)

    def _compute_loss_for_module_continuous(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the sum of the losses for actions in a box."""
        alpha, mean = self.curr_log_alpha[module_id].exp().detach(), mean_over(batch)
        following = fwd_out[QF_TARGET_NEXT] - alpha * fwd_out[LOGP_NEXT]
        losses = self._critic_losses(module_id, config, batch, following, fwd_out[QF_PREDS], fwd_out.get(QF_TWIN_PREDS))
        logp = fwd_out[LOGP]
        losses["policy"] = mean(alpha * logp - fwd_out[Q_CURR])
        return self._with_alpha(module_id, losses, mean(logp), fwd_out[Q_CURR])

    def _compute_loss_for_module_discrete(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the sum of the losses for discrete actions: expectations over all of them."""
        alpha, mean = self.curr_log_alpha[module_id].exp().detach(), mean_over(batch)
        next_log_probs = fwd_out[ACTION_LOG_PROBS_NEXT]
        following = (fwd_out[ACTION_PROBS_NEXT] * (fwd_out[QF_TARGET_NEXT] - alpha * next_log_probs)).sum(-1)
        first = getattr(self.module[module_id].action_space, "start", 0)
        action = (batch[Columns.ACTIONS].long() - first).unsqueeze(-1)
        critics = [fwd_out[name] for name in (QF_PREDS, QF_TWIN_PREDS) if name in fwd_out]
        chosen = [values.gather(-1, action).squeeze(-1) for values in critics]
        losses = self._critic_losses(
            module_id, config, batch, following, chosen[0], chosen[1] if len(chosen) > 1 else None
        )
        least = torch.stack(critics).amin(0).detach()
        probs, log_probs = fwd_out[ACTION_PROBS], fwd_out[ACTION_LOG_PROBS]
        losses["policy"] = mean((probs * (alpha * log_probs - least)).sum(-1))
        total = self._with_alpha(module_id, losses, mean((log_probs * probs).sum(-1)), fwd_out[QF_PREDS])
        self.metrics.log_value((module_id, "logps"), log_probs.mean())
        return total

    def _critic_losses(
        self, module_id: str, config: Any, batch: Any, following: Tensor, value: Tensor, twin: Tensor | None
    ) -> dict[str, Tensor]:
        """Return the loss of each critic, and log the error of each row.

        Args:
            module_id: of the module.
            config: its settings.
            batch: its columns.
            following: the value that follows, `[row]`.
            value: of the actions taken, `[row]`.
            twin: that of the other critic.
        """
        mean = mean_over(batch)
        target = (batch[Columns.REWARDS] + discounts(config, batch) * following).detach()
        by_critic = {"qf": value} | ({} if twin is None or not config.twin_q else {"qf_twin": twin})
        td_error = torch.stack([(one - target).abs() for one in by_critic.values()]).mean(0)
        self.metrics.log_value((module_id, TD_ERROR), td_error, reduce="item_series")
        self.metrics.log_value((module_id, "td_error_mean"), mean(td_error))
        huber = nn.functional.smooth_l1_loss
        return {name: mean(weighted(huber(one, target, reduction="none"), batch)) for name, one in by_critic.items()}

    def _with_alpha(self, module_id: str, losses: dict[str, Tensor], logp: Tensor, values: Tensor) -> Tensor:
        """Return the sum of the losses and that of the weight of the entropy; keep and log them.

        Args:
            module_id: of the module.
            losses: by optimizer.
            logp: mean log-probability of actions, 0-d.
            values: for the results.
        """
        log_alpha, target = self.curr_log_alpha[module_id], self.target_entropy[module_id]
        losses["alpha"] = -(log_alpha * (logp.detach() + target)).mean()
        self._own_losses |= {(module_id, name): loss for name, loss in losses.items()}
        alpha = log_alpha.detach().exp()[0]
        logged = {f"{name}_loss": loss for name, loss in losses.items()}
        logged |= {"alpha_value": alpha, "log_alpha_value": alpha.log(), "target_entropy": target, "logps": logp}
        if isinstance(self.module[module_id].action_space, gymnasium.spaces.Discrete):
            del logged["logps"]
        self.metrics.log_dict(logged | {"qf_mean": values.mean()}, key=module_id)
        self.metrics.log_value((module_id, "qf_max"), values.max(), reduce="max")
        self.metrics.log_value((module_id, "qf_min"), values.min(), reduce="min")
        return sum(losses.values(), torch.zeros((), device=self.device))

    def compute_gradients(self, loss_per_module: Mapping[str, Tensor], **_: Any) -> dict[Hashable, Tensor | None]:
        """Return the gradients of the loss of each optimizer with respect to what it steps.

        Args:
            loss_per_module: sums of losses, of whose modules.
        """
        gradients: dict[Hashable, Tensor | None] = {}
        for module_id in loss_per_module:
            if module_id == ALL_MODULES:
                continue
            for name, optimizer in self.get_optimizers_for_module(module_id):
                refs = self.filter_param_dict_for_optimizer(self._params, optimizer)
                loss = self._own_losses.pop((module_id, name))
                weights = [self._params[ref] for ref in refs]
                found = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
                gradients |= dict(zip(refs, found, strict=True))
        return gradients

    def _step(self, minibatch: MultiBatch, trained: Any) -> None:
        """Take a step with noise for the actions of the policy, of the learner's generator."""
        super()._step({name: self._with_noise(name, columns) for name, columns in minibatch.items()}, trained)

    def _with_noise(self, module_id: str, columns: ModuleBatch) -> ModuleBatch:
        space: Any = self.module[module_id].action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return columns
        shape = (columns.rows, math.prod(space.shape))
        noise = [torch.randn(shape, generator=self.generator).to(self.device) for _ in range(2)]
        return ModuleBatch({**columns, NOISE: noise[0], NEXT_NOISE: noise[1]})

    def get_extra_state(self) -> dict[str, Any]:
        """Return the logarithms of the weights of the entropy, besides what other learners save."""
        logarithms = {name: float(value.detach()) for name, value in self.curr_log_alpha.items()}
        return super().get_extra_state() | {_LOG_ALPHAS: logarithms}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        super().set_extra_state(state)
        with torch.no_grad():
            for module_id, value in state.get(_LOG_ALPHAS, {}).items():
                self.curr_log_alpha[module_id].fill_(value)
