"""The loss of discrete SAC: expectations over all actions instead of samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from pydantic import Field
from rlcore_plugin_mlp.model import MaskedActor
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.learners import TargetUpdater
from rlcore.types import Context, Key
from rlcore_plugin_sac.critics import frozen
from rlcore_plugin_sac.discrete_model import ActionCritics
from rlcore_plugin_sac.entropy import FixedTemperature, SoftLoss
from rlcore_plugin_sac.loss import TRANSITION, ActorCriticConfig, asked, critics_loss, returns


class DiscreteSACLoss(SoftLoss):
    """Soft actor-critic for discrete actions (Christodoulou, 2019, arXiv 1910.07207).

    The value of a state is the exact expectation of equation 10, of the least value of all critics; `loss_critics` is
    half the squared error of the action taken, summed over the critics; `loss_actor` is equation 12 and
    `loss_temperature` equation 11, by the logarithm of the temperature. Nothing is random in it.

    Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. With `loss_critics` come the metrics `q_value` and `td_error`
    `[sample, 1]`, the largest absolute error of the critics; with `loss_actor` comes `entropy`, and with
    `loss_temperature` `temperature`.

    Attributes:
        target_updater: moves the target critics, called by the learner.

    Raises:
        ConfigError: the critics value pairs of observation and action.
    """

    class Config(ActorCriticConfig):
        """Discrete SAC."""

        temperature: FixedTemperature = Field(
            "auto", description="weight of the entropy; auto: learned, so that the entropy is the target's"
        )
        target_entropy: float = Field(
            0.5, ge=0, lt=1, description="the entropy to keep, as a fraction of that of n uniform actions, log n"
        )

    requires = ("actor", "critics", "target_critics", "temperature")
    reads: tuple[Key, ...] = TRANSITION

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        if not isinstance(model.critics, ActionCritics):
            raise ConfigError(
                '[loss] discrete-sac needs critics of discrete actions; set [model] use = "sac:discrete-actor-critic"'
            )
        self.actor = model.actor
        self.critics = model.critics
        self.target_critics = model.target_critics
        pair = (self.critics, self.target_critics)
        self.target_updater = TargetUpdater([pair], config.target_interval, config.target_tau)
        self._gamma = config.gamma
        self.in_turn = config.in_turn
        self._first_action: int = model.first_action
        self._largest = math.log(self.actor.distribution.num_parameters)
        self.keep_temperature(model.temperature, config, config.target_entropy * self._largest)

    def check_entropy(self, entropy: float) -> None:
        """Refuse an entropy that is not below that of uniform actions."""
        if entropy >= self._largest:
            raise ConfigError(
                f"[loss] target_entropy = {entropy / self._largest:.4g} cannot be reached: it is a fraction of the "
                "entropy of uniform actions, and must be less than 1"
            )

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics."""
        result: dict[str, Tensor] = {}
        if asked("loss_critics", names):
            result |= self._critics_loss(minibatch)
        learns = self._learns and asked("loss_temperature", names)
        if asked("loss_actor", names):
            loss, entropy = self._actor_loss(minibatch["observation"])
            result |= {"loss_actor": loss, "entropy": entropy}
        elif learns:
            with torch.no_grad():
                log_probs = self.actor(minibatch["observation"]).log_softmax(-1)
                entropy = _expected(log_probs, -log_probs).mean()
        if learns:
            result |= self.temperature_loss(entropy, self._choice(minibatch["observation"]))
        return result

    def _choice(self, observation: Tensor) -> Tensor | float:
        """Return the mean entropy of uniform actions as a fraction of that of all: less where some are forbidden."""
        if not isinstance(self.actor, MaskedActor):
            return 1.0
        allowed = self.actor.mask.allowed(observation).sum(-1).clamp(min=1)
        return allowed.log().mean() / self._largest

    def _critics_loss(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        values = self.critics(minibatch["observation"])
        action = minibatch["action"] - self._first_action if self._first_action else minibatch["action"]
        action = action.reshape(1, -1, 1).expand(values.shape[0], -1, -1)
        value = values.gather(-1, action)
        return critics_loss(minibatch, value, self._target(minibatch), 0.5)

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the target of the critics, `[sample, 1]`."""
        observation = minibatch["next", "observation"]
        log_probs = self.actor(observation).log_softmax(-1)
        values = self.target_critics(observation).amin(0)
        return returns(minibatch, self._gamma, _expected(log_probs, values - self.alpha() * log_probs))

    def _actor_loss(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss, and the mean entropy without gradients."""
        log_probs = self.actor(observation).log_softmax(-1)
        values = self.critics(observation, frozen).amin(0)
        loss = _expected(log_probs, self.alpha() * log_probs - values).mean()
        return loss, _expected(log_probs, -log_probs).detach().mean()


def _expected(log_probs: Tensor, values: Tensor) -> Tensor:
    """Return the expectation `[sample, 1]` of values `[sample, action]`."""
    return (log_probs.exp() * values).sum(-1, keepdim=True)
