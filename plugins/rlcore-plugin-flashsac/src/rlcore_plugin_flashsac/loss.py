"""The loss: SAC over distributions of the return."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Self

import torch
from pydantic import Field, model_validator
from rlcore_plugin_replay.td_errors import WEIGHT
from rlcore_plugin_sac.critics import frozen
from rlcore_plugin_sac.entropy import BoundedSoftLoss, FixedTemperature
from rlcore_plugin_sac.loss import IN_TURN, TRANSITION, asked
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.learners import TargetConfig
from rlcore.types import Context, Key
from rlcore_plugin_flashsac.actor import sampled
from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.bounds import BoundedTargets, keep
from rlcore_plugin_flashsac.categorical import of_least_mean, project, soft_returns
from rlcore_plugin_flashsac.critics import CategoricalCritics
from rlcore_plugin_flashsac.observation_scale import ObservationScale
from rlcore_plugin_flashsac.return_scale import ReturnScale


class CategoricalSACLoss(BoundedSoftLoss):
    """SAC of which the critics learn distributions of the scaled return (Kim et al., 2026, arXiv 2604.04539).

    `loss_critics` is the cross entropy to the projected target, a mean over critics and samples.
    The target is the distribution of the critic with the least mean, shifted by the entropy. `loss_actor` and
    `loss_temperature` are those of SAC. With batch norms, critics and their targets see a transition and what follows
    it in one joint batch, as CrossQ does; the critics that value the actor's actions use their running statistics, and
    so does the actor for the next actions. The actor that is trained normalises by observations of both ends.

    Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. With `loss_critics` come the metrics `q_value` and `td_error`
    `[sample, 1]`, the largest divergence of a critic from its target, and `reward_scale`; with `loss_actor` comes
    `entropy`, and with `loss_temperature` `temperature`. Returns are those of scaled rewards.

    Attributes:
        reward_scale: divides the rewards, 0-d.
        observation_norm: of the model.
        in_turn: whether the losses are taken one after the other.
        target_updater: keeps the bounds of the model and moves the targets, called by the learner.

    Raises:
        ConfigError: the model has no such critics; no transform learns the scale; several processes train together.
    """

    class Config(TargetConfig):
        """Categorical SAC."""

        target_interval: int = Field(1, ge=1, description="optimisation steps between two updates of the targets")
        target_tau: float = Field(0.01, gt=0, le=1, description="how far an update moves the targets: 1 copies")
        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        in_turn: bool = Field(False, description=IN_TURN)
        temperature: FixedTemperature = Field(
            "auto", description="weight of the entropy; auto: learned, so that the entropy is the target's"
        )
        target_entropy: float | None = Field(
            None, allow_inf_nan=False, description="the entropy to keep; default: that of target_std"
        )
        # above 0.484 a normal distribution has more entropy than any over actions in [-1, 1]
        target_std: float = Field(
            0.15, gt=0, le=0.48, description="standard deviation of each action with the entropy to keep"
        )

        @model_validator(mode="after")
        def _has_one_target(self) -> Self:
            if self.target_entropy is not None and "target_std" in self.model_dump(exclude_defaults=True):
                raise ValueError("target_entropy and target_std both say which entropy to keep; leave one out")
            return self

    requires = ("actor", "critics", "target_critics", "temperature")
    reads: tuple[Key, ...] = TRANSITION
    loss_names: tuple[str, ...] = ("loss_actor", "loss_critics")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        _check(model, context)
        self.actor = model.actor
        self.critics: CategoricalCritics = model.critics
        self.target_critics: CategoricalCritics = model.target_critics
        self.reward_scale = model.reward_scale
        self.observation_norm = model.observation_norm
        self._box = model.box
        self._gamma = config.gamma
        self._joint = bool(model.has_batch_norm)
        self.in_turn = config.in_turn
        _scale_of(context).fill(self.reward_scale, model.largest_return)
        _fill_norm(model, context)
        pairs = [(self.critics, self.target_critics)]
        self.target_updater = BoundedTargets(pairs, model.bounds, config.target_interval, config.target_tau)
        self.keep_temperature(model.temperature, config, _entropy(config, self._box.size))

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics; statistics move.

        With `in_turn` the parameters are put within their bounds first, which the step of the turn before left.
        """
        if self.in_turn and not torch.compiler.is_compiling():  # a compiled turn ends with it
            keep(self.target_updater.bounds)
        critics, actor = asked("loss_critics", names), asked("loss_actor", names)
        temperature = self._learns and asked("loss_temperature", names)
        result: dict[str, Tensor] = {}
        following = self._following(minibatch) if critics else None  # before the actor's statistics move
        if actor:
            loss, entropy = self._actor_loss(minibatch, Statistics.MOVED)
            result |= {"loss_actor": loss, "entropy": entropy}
        elif temperature:
            with torch.no_grad():
                entropy = self._actor_loss(minibatch, Statistics.BATCH)[1]
        of_critics = {} if following is None else self._critics_loss(minibatch, *following)
        result |= of_critics
        if temperature:
            result |= self.temperature_loss(entropy)
        return result

    @torch.no_grad()
    def _following(self, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the next actions and their log-densities, by the running statistics of the actor."""
        observation = minibatch["next", "observation"]
        return self.actor.rsample(observation, minibatch["next", "noise"], Statistics.RUNNING)  # type: ignore[no-any-return]

    def _actor_loss(self, minibatch: Mapping[Key, Tensor], statistics: Statistics) -> tuple[Tensor, Tensor]:
        """Return the loss, and the mean entropy without gradients."""
        observation, noise = minibatch["observation"], minibatch["noise"]
        observations = torch.cat([observation, minibatch["next", "observation"]]) if self._joint else observation
        unit, log_prob = sampled(self.actor.parameters_of(observations, statistics)[: len(noise)], noise)
        value = self.critics.values(observation, unit, frozen).amin(0)
        return (self.alpha() * log_prob - value).mean(), -log_prob.detach().mean()

    def _critics_loss(self, minibatch: Mapping[Key, Tensor], unit: Tensor, log_prob: Tensor) -> dict[str, Tensor]:
        """Return the loss and its metrics.

        Args:
            minibatch: entries.
            unit: the next actions, scaled to [-1, 1].
            log_prob: of those.
        """
        now = (minibatch["observation"], self._box.to_unit(minibatch["action"]))
        after = (minibatch["next", "observation"], unit)
        both = (torch.cat([now[0], after[0]]), torch.cat([now[1], after[1]]))
        samples = len(unit)
        with torch.no_grad():
            ends = both if self._joint else after
            log_probs = self.target_critics.log_probs(*ends, statistics=Statistics.BATCH)[:, -samples:]
            target = self._target(minibatch, log_probs, log_prob)
        ends = both if self._joint else now
        log_probs = self.critics.log_probs(*ends, statistics=Statistics.MOVED)[:, :samples]
        errors = -(target * log_probs).sum(-1, keepdim=True)
        weight = minibatch.get(WEIGHT, None)
        loss = (errors if weight is None else errors * weight).mean()
        with torch.no_grad():
            divergence = errors + torch.special.xlogy(target, target).sum(-1, keepdim=True)
            value = (log_probs.exp() * self.critics.support).sum(-1).mean()
        return {
            "loss_critics": loss,
            "q_value": value,
            "td_error": divergence.amax(0),
            "reward_scale": self.reward_scale.value.clone(),
        }

    def _target(self, minibatch: Mapping[Key, Tensor], log_probs: Tensor, log_prob: Tensor) -> Tensor:
        """Return the projected distributions `[sample, atom]`.

        Args:
            minibatch: entries.
            log_probs: of what follows, by the target critics, `[critic, sample, atom]`.
            log_prob: of the next actions, `[sample, 1]`.
        """
        support = self.target_critics.support
        steps = minibatch.get("steps_to_next_obs", None)
        discount = self._gamma if steps is None else self._gamma**steps
        reward = minibatch["next", "reward"] / self.reward_scale.value
        going = ~minibatch["next", "terminated"]
        returns = soft_returns(reward, discount, going, support, self.alpha() * log_prob)
        return project(returns, of_least_mean(log_probs, support), support)


def _check(model: Any, context: Context) -> None:
    """Refuse a model without categorical critics, and several processes.

    Raises:
        ConfigError: the one or the other.
    """
    if not isinstance(model.critics, CategoricalCritics):
        raise ConfigError('[loss] categorical-sac needs critics of distributions; set [model] use = "flashsac:blocks"')
    if context.group.size > 1:
        raise ConfigError(
            "[loss] categorical-sac learns how far returns reach, and normalises, by what one process sees; with "
            "several these would differ. Train in one process"
        )


def _scale_of(context: Context) -> ReturnScale:
    """Return the transform that learns how far returns reach.

    Raises:
        ConfigError: there is none.
    """
    for transform in context.transforms:
        if isinstance(transform, ReturnScale):
            return transform
    raise ConfigError(
        "[loss] categorical-sac scales rewards so that returns fit the atoms of its critics; add the section "
        '[[transform]] with use = "flashsac:return-scale"',
        remedy={"transform": [{"use": "flashsac:return-scale"}]},
    )


def _fill_norm(model: Any, context: Context) -> None:
    """Let the transform that learns mean and deviation of observations fill those of the model.

    Raises:
        ConfigError: there is the one without the other.
    """
    transforms = [transform for transform in context.transforms if isinstance(transform, ObservationScale)]
    if model.observation_norm is None and transforms:
        raise ConfigError("[transform] observation-scale counts for nothing without [model] observation_norm = true")
    if model.observation_norm is not None and not transforms:
        raise ConfigError(
            "[model] observation_norm needs what learns mean and deviation of the observations; add the section "
            '[[transform]] with use = "flashsac:observation-scale"',
            remedy={"transform": [{"use": "flashsac:observation-scale"}]},
        )
    for transform in transforms:
        transform.fill(model.observation_norm)


def _entropy(config: CategoricalSACLoss.Config, actions: int) -> float:
    """Return the entropy to keep: as given, or that of normal distributions (FlashSAC)."""
    if config.target_entropy is not None:
        return config.target_entropy
    return 0.5 * actions * math.log(2 * math.pi * math.e * config.target_std**2)
