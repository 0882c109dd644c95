"""The losses of TD-MPC2: of the world model with its critics, along imagined steps, and of the policy prior."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from pydantic import Field
from rlcore_plugin_replay.n_step import STEPS
from rlcore_plugin_sac.box import ActionBox
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import TargetConfig, TargetUpdater
from rlcore.types import MASK, Context, Key, Loss
from rlcore_plugin_tdmpc2.dropout import dropout_mask
from rlcore_plugin_tdmpc2.layers import Ensemble, Network, frozen, whole
from rlcore_plugin_tdmpc2.prior import Prior
from rlcore_plugin_tdmpc2.two_hot import TwoHot

REWARD: Key = ("next", "reward")
TERMINATED: Key = ("next", "terminated")


class TDMPC2Loss(nn.Module, Loss):
    """TD-MPC2 (Hansen et al., 2024, arXiv 2310.16828, equations 3 to 5).

    Minibatches are sequences, as the buffer `replay:sequences` has them with `n_steps = 1`; their `sequence_length` is
    the horizon, and a burn-in is not read. `loss_model` is that of the latents, rewards and values along the steps that
    the dynamics imagines from the first observation; `loss_prior` that of the policy prior at the same latents, which
    has no gradient to anything else.

    With `loss_model` come the metrics `consistency`, `reward_error` and `value_error`, without their weights, and
    `td_target`; with `loss_prior` come `prior_entropy`, `q_value` and `q_scale`. Of several steps that are padding, as
    in an episode that is shorter than the horizon, none counts.

    Attributes:
        burn_in: rows at the beginning of each sequence that are not read; set by the buffer.
        target_updater: moves the targets of the critics.
    """

    encoder: Network
    dynamics: Network
    reward: Network
    critics: Ensemble
    target_critics: Ensemble
    prior: Prior
    takes_memory = True
    requires = ("encoder", "dynamics", "reward", "critics", "target_critics", "prior")
    loss_names = ("loss_model", "loss_prior")
    trains = {"loss_model": ("encoder", "dynamics", "reward", "critics"), "loss_prior": ("prior",)}  # noqa: RUF012
    reads: tuple[Key, ...] = ("observation", "action", MASK, STEPS, REWARD, TERMINATED)
    gives_td_error = False

    class Config(TargetConfig):
        """The weights of the losses, and the pace of the targets."""

        target_interval: int = Field(1, ge=1, description="optimisation steps between two updates of the targets")
        target_tau: float = Field(0.01, gt=0, le=1, description="how far an update moves the targets: 1 copies")
        rho: float = Field(0.5, gt=0, le=1, description="weight of a step, relative to the one before it")
        consistency: float = Field(20.0, ge=0, allow_inf_nan=False, description="weight of the error of latents")
        reward: float = Field(0.1, ge=0, allow_inf_nan=False, description="weight of the error of rewards")
        value: float = Field(0.1, ge=0, allow_inf_nan=False, description="weight of the error of values")
        entropy: float = Field(1e-4, ge=0, allow_inf_nan=False, description="weight of the entropy of the prior")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        for name in self.requires:
            self.add_module(name, model.get_submodule(name))
        self.scale = model.scale
        self.target_updater = TargetUpdater(
            [(model.critics, model.target_critics)], config.target_interval, config.target_tau
        )
        self._config = config
        self._box: ActionBox = model.box
        self._numbers: TwoHot = model.numbers
        self._gamma, self._dropout = model.gamma, model.dropout
        self._actions = self._box.size
        self.burn_in = 0
        self._checked = False

    def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return the noise of the prior's actions, which critics count, and what dropout leaves of all of them.

        Args:
            samples: rows of the minibatch, `time * sequence`.
            generator: samples all of them.

        Returns:
            `noise` and `("next", "noise")`, `[sample, action]`; `target_members` and `prior_members`, int64
            `[member]`; with dropout `dropout_model` `[critic, sample, size]` and `dropout_prior` `[member, sample,
            size]`.
        """
        device, critics = generator.device, self.critics.members
        now, following = torch.randn(2, samples, self._actions, generator=generator, device=device).unbind(0)
        members = [torch.randperm(critics, generator=generator, device=device)[:2] for _ in range(2)]
        noise: dict[Key, Tensor] = {
            "noise": now,
            ("next", "noise"): following,
            "target_members": members[0],
            "prior_members": members[1],
        }
        if self._dropout:
            sizes = {"dropout_model": critics, "dropout_prior": len(members[1])}
            for name, count in sizes.items():
                shape = (count, samples, self.critics.first_hidden)
                noise[name] = dropout_mask(shape, self._dropout, generator)
        return noise

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics."""
        if not self._checked and not torch.compiler.is_compiling():
            self._check(minibatch)
        steps = slice(self.burn_in, -1)
        mask, action = minibatch[MASK][steps], self._box.to_unit(minibatch["action"][steps])
        learns_model = names is None or "loss_model" in names
        with torch.set_grad_enabled(learns_model and torch.is_grad_enabled()):
            latents = self._imagined(minibatch["observation"][self.burn_in], action)
        result: dict[str, Tensor] = {}
        if learns_model:
            result |= self._model_loss(minibatch, latents, action, mask)
        if names is None or "loss_prior" in names:
            result |= self._prior_loss(minibatch, latents.detach(), torch.cat([mask[:1], mask]))
        return result

    def _imagined(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return the latents `[time + 1, sequence, latent]` of actions `[time, sequence, action]` from a first one."""
        latents = [self.encoder.encode(observation)]
        for own in action.unbind(0):
            latents.append(self.dynamics(torch.cat([latents[-1], own], -1)))
        return torch.stack(latents)

    def _model_loss(
        self, minibatch: Mapping[Key, Tensor], latents: Tensor, action: Tensor, mask: Tensor
    ) -> dict[str, Tensor]:
        """Return `loss_model` and its metrics.

        Args:
            minibatch: entries.
            latents: `[time + 1, sequence, latent]`.
            action: `[time, sequence, action]`.
            mask: which steps count, `[time, sequence, 1]`.
        """
        reward = minibatch[REWARD][self.burn_in : -1]
        with torch.no_grad():
            following = self.encoder.encode(minibatch["observation"][self.burn_in + 1 :])
            target = self._target(minibatch, following, reward)
        errors = (latents[1:] - following).square().mean(-1, keepdim=True)
        inputs = torch.cat([latents[:-1], action], -1)
        reward_errors = self._numbers.cross_entropy(self.reward(inputs), reward)
        rows = inputs.flatten(0, 1)
        logits = self.critics.outputs(rows, whole, _first(minibatch.get("dropout_model", None), len(rows)))
        value_errors = self._numbers.cross_entropy(logits, target.flatten(0, 1)).mean(0).view_as(target)
        config = self._config
        consistency, of_reward, of_value = (self._along(each, mask) for each in (errors, reward_errors, value_errors))
        total = config.consistency * consistency + config.reward * of_reward + config.value * of_value
        metrics = {"consistency": consistency, "reward_error": of_reward, "value_error": of_value}
        metrics["td_target"] = _mean(target, mask)
        return {"loss_model": total, **{name: value.detach() for name, value in metrics.items()}}

    def _target(self, minibatch: Mapping[Key, Tensor], following: Tensor, reward: Tensor) -> Tensor:
        """Return the target of the critics, `[time, sequence, 1]`: the lesser of two targets' values, discounted.

        Args:
            minibatch: entries.
            following: latents after the steps, `[time, sequence, latent]`.
            reward: of the steps, `[time, sequence, 1]`.
        """
        rows = following.flatten(0, 1)
        action = self.prior.action(rows, minibatch["next", "noise"][: len(rows)])
        logits = self.target_critics.outputs(torch.cat([rows, action], -1), frozen(minibatch["target_members"]))
        value = self._numbers.values(logits).amin(0).view_as(reward)
        going = ~minibatch[TERMINATED][self.burn_in : -1]
        return torch.addcmul(reward, going.to(value.dtype), value, value=self._gamma)

    def _prior_loss(self, minibatch: Mapping[Key, Tensor], latents: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return `loss_prior` and its metrics.

        Args:
            minibatch: entries.
            latents: `[time + 1, sequence, latent]`, without gradients.
            mask: which count, `[time + 1, sequence, 1]`.
        """
        rows = latents.flatten(0, 1)
        sampled = self.prior.sample(rows, minibatch["noise"][: len(rows)])
        take = frozen(minibatch["prior_members"])
        masks = _first(minibatch.get("dropout_prior", None), len(rows))
        logits = self.critics.outputs(torch.cat([rows, sampled.action], -1), take, masks)
        value = self._numbers.values(logits).mean(0)
        self.scale.update(value[: latents.shape[1]].detach().flatten())
        scale = self.scale.value
        # the entropy of the normal distribution, times the number of actions, as the reference has it
        entropy = -self._actions * sampled.normal_log_prob
        objective = value / scale + self._config.entropy * entropy
        loss = -self._along(objective.view_as(mask), mask)
        with torch.no_grad():
            metrics = {
                "prior_entropy": _mean(-sampled.log_prob.view_as(mask), mask),
                "q_value": _mean(value.view_as(mask), mask),
                "q_scale": scale,
            }
        return {"loss_prior": loss, **metrics}

    def _along(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the mean over time of the means over sequences, each step weighted by `rho^time`, 0-d.

        Args:
            values: `[time, sequence, 1]`.
            mask: which count, of the same shape.
        """
        of_time = torch.where(mask, values, 0).sum((1, 2)) / mask.sum((1, 2)).clamp(min=1)
        weight = self._config.rho ** torch.arange(len(of_time), device=of_time.device, dtype=of_time.dtype)
        return (of_time * weight).mean()

    def _check(self, minibatch: Mapping[Key, Tensor]) -> None:
        """Refuse rewards of several steps, before the first update.

        Raises:
            ConfigError: the buffer joins steps.
        """
        steps = minibatch[STEPS]
        if steps.numel() and int(steps.max()) > 1:
            raise ConfigError(
                "[buffer] n_steps: the loss tdmpc2 learns the reward of one step; set n_steps = 1, and the horizon by "
                "sequence_length"
            )
        self._checked = True


def _first(mask: Tensor | None, rows: int) -> Tensor | None:
    """Return the rows of a mask `[member, row, feature]` that are used."""
    return None if mask is None else mask[:, :rows]


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the values that count, 0-d."""
    return torch.where(mask, values, 0).sum() / mask.sum().clamp(min=1)
