"""The PPO and A2C losses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.learners import inputs_of, mean_of
from rlcore.types import FIRST, MASK, POLICY_STATE, Context, Key, Loss, has_memory, offers
from rlcore_plugin_ppo.health import crowded_out
from rlcore_plugin_ppo.kl_stop import KLStop

CriticLoss = Literal["smooth_l1", "l2"]


class _WithSharedBody(Protocol):
    """A model with layers that actor and critic share, and with a method that runs them once for both."""

    def actor_and_critic(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return `actor(*inputs)` and `critic(*inputs)`, with the same gradients."""
        ...


class ActorCriticConfig(BaseModel, extra="forbid"):
    """Keys of both losses."""

    entropy_coef: float = Field(0.01, ge=0, description="weight of the entropy bonus")
    critic_coef: float = Field(0.5, ge=0, description="weight of the critic's loss")
    critic_loss: CriticLoss = Field("l2", description="smooth_l1, or l2: half the squared error")
    normalize_advantage: bool = Field(False, description="standardise advantages within each minibatch of two or more")


class ActorCriticLoss(nn.Module, Loss):
    """Base of losses with an actor and a critic; a subclass adds the objective of the actor.

    Attributes:
        loss_names: losses that `forward` can return one by one.
        trains: loss to the parts of the model that it trains.
        gives_td_error: False; the loss gives a buffer no priorities.
        sides: losses of the actor and losses of the critic, which may be computed at the same time.
        takes_memory: True; minibatches for a policy with memory are sequences, and masked steps do not count.
        schedulable: the weights of the losses, which schedules may move.
    """

    requires = ("actor", "critic")
    loss_names = ("loss_objective", "loss_critic", "loss_entropy")
    trains: Mapping[str, tuple[str, ...]] = MappingProxyType(
        {"loss_objective": ("actor",), "loss_critic": ("critic",), "loss_entropy": ("actor",)}
    )
    gives_td_error = False
    takes_memory = True
    sides = (("loss_objective", "loss_entropy"), ("loss_critic",))
    reads: tuple[Key, ...] = ("observation", "action", "advantage", "value_target")

    def __init__(self, config: ActorCriticConfig, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.actor = model.actor
        self.critic = model.critic
        self._actor_and_critic = model.actor_and_critic if offers(model, _WithSharedBody) else None
        self.schedulable: dict[str, Any] = {"entropy_coef": config.entropy_coef, "critic_coef": config.critic_coef}
        self._inputs, self._mean = inputs_of(model), mean_of(model)
        remembers = has_memory(model)
        if remembers:
            self.reads = (*self.reads, POLICY_STATE, FIRST)
        error = nn.functional.smooth_l1_loss if config.critic_loss == "smooth_l1" else _half_l2
        self._critic_error = partial(_counted_error, error, self._mean) if remembers else partial(_error, error)
        self._standardise = _standardise_counted if remembers else _standardise
        self._normalize_advantage = config.normalize_advantage

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return losses and metrics of a minibatch, 0-d.

        Args:
            minibatch: entries `[sample, ...]`.
            names: losses to compute; None for all. The metrics of the actor come with its losses.
        """
        names = self.loss_names if names is None else names
        outputs: tuple[Tensor | None, Tensor | None] = (None, None)
        if self._actor_and_critic is not None and len(names) == len(self.loss_names):
            outputs = self._actor_and_critic(*self._inputs(minibatch))
        parameters, value = outputs
        losses: dict[str, Tensor] = {}
        metrics: dict[str, Tensor] = {}
        if "loss_objective" in names or "loss_entropy" in names:
            parameters = self.actor(*self._inputs(minibatch)) if parameters is None else parameters
            log_prob, entropies = self.actor.distribution.log_prob_and_entropy(parameters, minibatch["action"])
            if "loss_entropy" in names:
                entropy = self._mean(entropies, minibatch)
                losses["loss_entropy"] = -self.schedulable["entropy_coef"] * entropy
                metrics["entropy"] = entropy.detach()
            if "loss_objective" in names:
                losses["loss_objective"], of_objective = self._objective(log_prob, minibatch)
                metrics.update(of_objective)
        if "loss_critic" in names:
            value = self.critic(*self._inputs(minibatch)) if value is None else value
            error = self._critic_loss(value, minibatch)
            losses["loss_critic"] = self.schedulable["critic_coef"] * error
        # in the order of `loss_names`, in which they are summed: a sum in another order has other bits
        return {name: losses[name] for name in self.loss_names if name in losses} | metrics

    def _objective(self, log_prob: Tensor, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of the actor without the entropy, and its metrics."""
        raise NotImplementedError

    def _critic_loss(self, value: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the error of the critic."""
        return self._critic_error(value, minibatch["value_target"], minibatch)

    def _advantage(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        advantage = minibatch["advantage"]
        return self._standardise(advantage, minibatch) if self._normalize_advantage else advantage


class PPOLoss(ActorCriticLoss):
    """The clipped surrogate objective (Schulman et al., 2017, arXiv 1707.06347, eq. 7 and 9).

    Reads `observation`, `action`, `sample_log_prob`, `advantage`, `value_target`, and `state_value` when the critic is
    clipped. Returns `loss_objective`, `loss_critic`, `loss_entropy` and the metrics `entropy`, `kl_approx`
    (Schulman's estimator: mean of ratio - 1 - log ratio) and `clip_fraction`.

    Attributes:
        hooks: `KLStop`, with `target_kl`.
    """

    reads = (*ActorCriticLoss.reads, "sample_log_prob")

    class Config(ActorCriticConfig):
        """PPO."""

        clip_epsilon: float = Field(0.2, gt=0, description="how far the probability ratio may leave 1")
        clip_value: bool = Field(False, description="clip the critic's change by clip_epsilon too")
        target_kl: float | None = Field(
            None, gt=0, description="leave out the remaining epochs of a batch once kl_approx is above it"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self.schedulable["clip_epsilon"] = config.clip_epsilon
        self._clip_value = config.clip_value
        self._max_grad_norm = context.run.resolved_config.get("learner", {}).get("max_grad_norm")
        self.hooks = [] if config.target_kl is None else [KLStop(config.target_kl)]
        if config.clip_value:
            self.reads = (*self.reads, "state_value")

    def health_checks(self) -> Mapping[str, Callable[[Mapping[str, float], float], str | None]]:
        """Return the checks that the hook `health` makes of a run with this loss."""
        return {"clipping": partial(crowded_out, max_grad_norm=self._max_grad_norm)}

    def _objective(self, log_prob: Tensor, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        log_ratio = log_prob - self._log_prob_before(minibatch)
        ratio = log_ratio.exp()
        clip = self.schedulable["clip_epsilon"]
        with torch.no_grad():
            clipped = ratio.clamp(1 - clip, 1 + clip)
            kl_approx = self._mean(ratio - 1 - log_ratio, minibatch)
            clip_fraction = self._mean((ratio != clipped).to(ratio.dtype), minibatch)
        metrics = {"kl_approx": kl_approx, "clip_fraction": clip_fraction}
        return self._mean(self._surrogate(ratio, clipped, self._advantage(minibatch)), minibatch), metrics

    def _log_prob_before(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the log-probabilities `[..., 1]` under the policy that the clipped ratio compares with."""
        return minibatch["sample_log_prob"]

    @staticmethod
    def _surrogate(ratio: Tensor, clipped: Tensor, advantage: Tensor) -> Tensor:
        """Return minus min(advantage * ratio, advantage * clipped).

        A clipped ratio has no gradient, so choosing between the two beforehand gives the same gradient as taking the
        minimum of both products, for half of the work.
        """
        with torch.no_grad():
            unclipped = advantage * ratio <= advantage * clipped
        return -advantage * torch.where(unclipped, ratio, clipped)

    def _critic_loss(self, value: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the error of the critic; with `clip_value`, of the value or the clipped value, whichever is worse."""
        target = minibatch["value_target"]
        if not self._clip_value:
            return self._critic_error(value, target, minibatch)
        old, clip = minibatch["state_value"], self.schedulable["clip_epsilon"]
        with torch.no_grad():
            change = value - old
            clipped = old + change.clamp(-clip, clip)
            # a value within the range is itself, gradient included, though `old + change` may round to another one
            unclipped = (change.abs() <= clip) | ((value - target).abs() >= (clipped - target).abs())
        return self._critic_error(torch.where(unclipped, value, clipped), target, minibatch)


class A2CLoss(ActorCriticLoss):
    """Advantage actor-critic (Mnih et al., 2016, arXiv 1602.01783, section 4), synchronous.

    Reads `observation`, `action`, `advantage`, `value_target`. Returns `loss_objective`, `loss_critic`, `loss_entropy`
    and the metric `entropy`.
    """

    Config = ActorCriticConfig

    def _objective(self, log_prob: Tensor, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        return -self._mean(log_prob * self._advantage(minibatch), minibatch), {}


def standardise(advantage: Tensor) -> Tensor:
    """Return advantages with mean 0 and standard deviation 1; equal ones become 0, a single one stays as it is."""
    if advantage.numel() < 2:
        return advantage
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def _standardise(advantage: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    return standardise(advantage)


def _standardise_counted(advantage: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    """Return advantages with mean 0 and standard deviation 1 over the steps of the mask; masked ones become 0."""
    if MASK not in minibatch:
        return standardise(advantage)
    mask = minibatch[MASK]
    count = mask.sum()
    # `where` and clamps instead of an index: shapes that depend on the mask would break a compiled update
    valid = torch.where(mask, advantage, 0)
    centred = torch.where(mask, valid - valid.sum() / count.clamp(min=1), 0)
    standardised = centred / ((centred.square().sum() / (count - 1).clamp(min=1)).sqrt() + 1e-8)
    return torch.where(count > 1, standardised, valid)


def _half_l2(value: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return 0.5 * nn.functional.mse_loss(value, target, reduction=reduction)


def _error(error: Callable[..., Tensor], value: Tensor, target: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    return error(value, target)


def _counted_error(
    error: Callable[..., Tensor],
    mean: Callable[[Tensor, Mapping[Key, Tensor]], Tensor],
    value: Tensor,
    target: Tensor,
    minibatch: Mapping[Key, Tensor],
) -> Tensor:
    return mean(error(value, target, reduction="none"), minibatch)
