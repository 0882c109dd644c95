"""The loss component: the world model on replayed sequences, actor and critic on what it imagines from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel, Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from rlcore.errors import ConfigError
from rlcore.learners import TargetUpdater
from rlcore.types import FIRST, MASK, POLICY_STATE, Context, Key, Loss
from rlcore_plugin_dreamer.bins import two_hot_loss
from rlcore_plugin_dreamer.categorical import divergence
from rlcore_plugin_dreamer.imagination import Imagined, imagine, imagine_step, predict
from rlcore_plugin_dreamer.model import DreamerModel
from rlcore_plugin_dreamer.returns import lambda_returns
from rlcore_plugin_dreamer.rssm import Latent, Observed
from rlcore_plugin_dreamer.sequences import Sequences


class Parts(NamedTuple):
    """Functions of tensors that most of the loss is made of; a compiled one may stand in the place of each.

    Attributes:
        observe: a few steps of observed sequences.
        imagine: a step of imagined ones.
        predict: what heads say of their states.
        world: the loss of the world model.
        behaviour: those of actor and critic.
        replayed: that of the critic on replayed steps.
    """

    observe: Callable[..., Any]
    imagine: Callable[..., Any]
    predict: Callable[..., Any]
    world: Callable[..., Any]
    behaviour: Callable[..., Any]
    replayed: Callable[..., Any]


class DreamerLoss(nn.Module, Loss):
    """DreamerV3: equations 4 to 7 of Hafner et al. (2025), over sequences of the buffer `replay:sequences`.

    `loss_world` is that of the world model, `loss_actor` and `loss_critic` those of actor and critic on imagined steps,
    and `loss_replayed_values` that of the critic on the replayed ones, which trains the world model too. Imagined steps
    have no gradient to the world model.

    Attributes:
        takes_memory: True.
        burn_in: 0: sequences begin with a state that was stored. Another number is refused.
        n_steps: 1. Another number is refused.
        stride: rows from the beginning of a sequence to that of the next one in its episode; the buffer sets it.
        inferred_states: of the policy before the row `stride` of the latest minibatch, `[sequence, state]`.
        target_updater: moves the slow critic, and keeps the bounds of returns.
    """

    class Config(BaseModel, extra="forbid"):
        """The scales of the losses, and the horizon."""

        imagination: PositiveInt = Field(15, description="steps that are imagined from each replayed one")
        discount_horizon: float = Field(333.0, gt=1, description="the discount is 1 - 1 / discount_horizon")
        lam: float = Field(0.95, ge=0, le=1, description="lambda of the returns")
        free_nats: float = Field(1.0, ge=0, description="divergence below which it trains nothing")
        dynamics_scale: float = Field(1.0, ge=0, description="scale of the divergence that trains the prior")
        representation_scale: float = Field(0.1, ge=0, description="scale of the divergence that trains the posterior")
        entropy_scale: float = Field(3e-4, ge=0, description="scale of the entropy of the actor")
        slow_scale: float = Field(1.0, ge=0, description="scale of the loss towards the slow critic")
        replayed_scale: float = Field(0.3, ge=0, description="scale of the critic's loss on replayed steps")
        target_tau: float = Field(0.02, gt=0, le=1, description="how far an update moves the slow critic")
        return_rate: float = Field(0.01, gt=0, le=1, description="how far an update moves the bounds of returns")
        return_limit: float = Field(
            1.0, gt=0, description="least distance of the bounds by which advantages are divided"
        )
        renew_states: bool = Field(True, description="whether updates bring the states that the buffer has up to date")

    requires = ("encoder", "rssm", "decoder", "reward", "continuation", "actor", "critic", "target_critic")
    reads: tuple[Key, ...] = (
        "observation",
        "action",
        FIRST,
        POLICY_STATE,
        MASK,
        ("next", "reward"),
        ("next", "terminated"),
    )
    takes_memory = True
    gives_td_error = False
    stride = 0
    inferred_states: Tensor | None = None

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.model: DreamerModel = model
        self._config = config
        self._discount = 1 - 1 / config.discount_horizon
        self._parts = Parts(
            model.rssm.observe_steps, imagine_step, predict, self._world, self._behaviour, self._replayed
        )
        moved: list[tuple[nn.Module, nn.Module]] = [
            (model.critic, model.target_critic),
            (model.latest_bounds, model.return_bounds),
        ]
        self.target_updater = TargetUpdater(moved, 1, config.target_tau)

    @property
    def burn_in(self) -> int:
        """Rows that only lead to the state of the policy: none."""
        return 0

    @burn_in.setter
    def burn_in(self, rows: int) -> None:
        if rows:
            raise ConfigError(
                f"[buffer] burn_in = {rows}: the loss dreamer goes on from the states that were stored; set burn_in = 0"
            )

    @property
    def n_steps(self) -> int:
        """Steps that a buffer joins: one."""
        return 1

    @n_steps.setter
    def n_steps(self, steps: int) -> None:
        if steps != 1:
            raise ConfigError(f"[buffer] n_steps = {steps}: the loss dreamer predicts single steps; set n_steps = 1")

    def compile_parts(self, compiled: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Compute by compiled functions: see `rlcore_plugin_compile.parts.HasParts`.

        The steps of sequences are compiled once, whatever their length; a graph of all of them would take very long.
        """
        self._parts = Parts(*map(compiled, self._parts))

    def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return what is random: latents of observed and of imagined steps, and imagined actions."""
        model, steps = self.model, self._config.imagination
        device, latents = generator.device, model.rssm.latents
        return {
            "posterior_noise": torch.rand(samples, latents, generator=generator, device=device),
            "prior_noise": torch.rand(steps, samples, latents, generator=generator, device=device),
            "action_noise": model.actions.noise((steps, samples), generator),
        }

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the losses and metrics."""
        sequences = Sequences.of(minibatch, self.model, self._discount)
        observed = self._observed(sequences, minibatch["posterior_noise"])
        if self.stride and self._config.renew_states:
            self.inferred_states = self._states_at(self.stride, sequences, observed.latent)
        parts = self._parts
        world, metrics = parts.world(sequences, observed)
        start = Latent(*(part.detach().flatten(0, 1) for part in observed.latent))
        noises = minibatch["prior_noise"], minibatch["action_noise"]
        imagined = imagine(self.model, start, *noises, parts.imagine, parts.predict)
        actor, critic, returns, found = parts.behaviour(imagined, sequences.counts.flatten())
        begin = (returns[0].view_as(sequences.counts), imagined.predicted.slow[0].view_as(sequences.counts))
        replayed = parts.replayed(sequences, observed.latent, *begin)
        losses = {
            "loss_world": world,
            "loss_actor": actor,
            "loss_critic": critic,
            "loss_replayed_values": self._config.replayed_scale * replayed,
        }
        return {**losses, **metrics, **found}

    def _observed(self, sequences: Sequences, noise: Tensor) -> Observed:
        rssm = self.model.rssm
        uniform = noise.view(*sequences.counts.shape, rssm.latents)
        tokens = self.model.encoder(sequences.observation)
        return rssm.observe(tokens, sequences.action, sequences.first, sequences.begin, uniform, self._parts.observe)

    def _states_at(self, row: int, sequences: Sequences, latent: Latent) -> Tensor:
        """Return the states of the policy before a row, as they are stored."""
        rssm = self.model.rssm
        deter, stoch = (part[row - 1].detach() for part in latent)
        index = torch.unflatten(stoch, -1, (rssm.latents, rssm.classes)).argmax(-1)
        return self.model.carried.packed(deter, index, sequences.action[row])

    def _world(self, sequences: Sequences, observed: Observed) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of the world model, and its terms."""
        config, model = self._config, self.model
        features = observed.latent.features()
        posterior, prior = observed.posterior, model.rssm.prior(observed.latent.deter)
        dynamics = divergence(posterior.detach(), prior).clamp(min=config.free_nats)
        representation = divergence(posterior, prior.detach()).clamp(min=config.free_nats)
        observation = model.decoder.loss(model.decoder(*observed.latent), sequences.observation)
        reward = two_hot_loss(
            model.reward(features).log_softmax(-1), sequences.reward.unsqueeze(-1), model.bins
        ).squeeze(-1)
        logits = model.continuation(features).squeeze(-1)
        continuation = functional.binary_cross_entropy_with_logits(logits, sequences.going, reduction="none")
        counts = sequences.counts
        terms = {
            "observation": mean_of(observation, counts),
            "reward": mean_of(reward, sequences.rewarded),
            "continuation": mean_of(continuation, counts),
            "dynamics": mean_of(dynamics, counts),
            "representation": mean_of(representation, counts),
        }
        scales = {"dynamics": config.dynamics_scale, "representation": config.representation_scale}
        total = torch.stack([scales.get(name, 1.0) * term for name, term in terms.items()]).sum()
        return total, {f"world/{name}": term.detach() for name, term in terms.items()}

    def _behaviour(self, imagined: Imagined, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return the losses of actor and critic on imagined steps, the returns `[step, row]`, and metrics.

        Args:
            imagined: steps from each row.
            counts: which rows count, `[row]`.
        """
        config, model = self._config, self.model
        reward, going, value, slow, log_probs, parameters = imagined.predicted
        with torch.no_grad():
            mix = torch.full_like(going[1:], config.lam)
            returns = lambda_returns(reward[1:], going[1:], value[1:], mix)
            shown = counts.expand_as(returns)
            bounds = model.return_bounds.moved(returns, shown, config.return_rate)
            model.latest_bounds.bounds.copy_(bounds)
            scale = (bounds[1] - bounds[0]).clamp(min=config.return_limit)
            advantage = (returns - value[:-1]) / scale
            weight = going.cumprod(0)[:-1]
        log_prob, entropy = model.actions.log_prob_and_entropy(parameters[:-1], imagined.action)
        actor = -weight * (log_prob * advantage + config.entropy_scale * entropy)
        critic = weight * self._towards(log_probs[:-1], returns, slow[:-1])
        metrics = {
            "return": mean_of(returns, shown),
            "return_scale": scale,
            "entropy": mean_of(entropy.detach(), shown),
        }
        return mean_of(actor, shown), mean_of(critic, shown), returns, metrics

    def _replayed(self, sequences: Sequences, latent: Latent, returns: Tensor, slow: Tensor) -> Tensor:
        """Return the loss of the critic on replayed steps, whose returns end in those that were imagined.

        Args:
            sequences: the steps.
            latent: their states.
            returns: imagined from each, `[time, sequence]`.
            slow: their values by the slow critic, likewise.
        """
        config = self._config
        features = latent.features()
        if not config.replayed_scale:
            return features.new_zeros(())
        mix = config.lam * sequences.trained[1:].to(returns.dtype)
        target = lambda_returns(sequences.reward[1:], sequences.going[1:], returns[1:], mix)
        loss = self._towards(self.model.critic(features[:-1]).log_softmax(-1), target, slow[:-1])
        return mean_of(loss, sequences.trained[:-1])

    def _towards(self, log_probs: Tensor, target: Tensor, slow: Tensor) -> Tensor:
        """Return the loss of values towards returns, and towards the values of the slow critic."""
        losses = two_hot_loss(log_probs, torch.stack([target, slow], -1), self.model.bins)
        return losses[..., 0] + self._config.slow_scale * losses[..., 1]


def mean_of(values: Tensor, counts: Tensor) -> Tensor:
    """Return the mean of the values that count, 0-d; 0 where none does."""
    return torch.where(counts, values, 0).sum() / counts.sum().clamp(min=1)
