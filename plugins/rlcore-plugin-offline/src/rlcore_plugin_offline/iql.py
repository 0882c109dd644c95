"""The loss of implicit Q-learning, which never asks for the value of an action that the data have not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from pydantic import Field
from rlcore_plugin_sac.loss import ActorCriticConfig, ActorCriticLoss, asked
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key

# of the exponent, beyond which a sample counts no more (the code of the paper)
_MOST_WEIGHT: Final = 100.0
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)


class IQLLoss(ActorCriticLoss):
    """Implicit Q-learning (Kostrikov, Nair and Levine, 2022, arXiv 2110.06169).

    `loss_value` is the expectile error of equation 5, with the least of the target critics; `loss_critics` is the
    squared error of equation 6, summed over the critics; `loss_actor` is the weighted log-probability of equation 7
    with weights of at most 100, under a normal distribution around the actor's actions, scaled to [-1, 1]. Each loss
    moves its own parts alone.

    Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. Metrics: `q_value` and `td_error` with the critics, `state_value` with
    the value, `advantage_weight` with the actor.

    Attributes:
        schedulable: `expectile` and `inverse_temperature`.

    Raises:
        ConfigError: the model has dropout.
    """

    requires = ("actor", "spread", "critics", "target_critics", "value")
    loss_names = ("loss_critics", "loss_value", "loss_actor")
    trains: Mapping[str, tuple[str, ...]] = MappingProxyType(
        {"loss_value": ("value",), "loss_critics": ("critics",), "loss_actor": ("actor", "spread")}
    )
    sides = (("loss_value",), ("loss_critics",), ("loss_actor",))

    class Config(ActorCriticConfig):
        """IQL."""

        expectile: float = Field(0.7, gt=0, lt=1, description="of the values of the data's actions: 0.5 is the mean")
        inverse_temperature: float = Field(
            3.0, ge=0, allow_inf_nan=False, description="how much better actions count more; 0: cloning"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context, [("critics", "target_critics")])
        model: Any = context.model
        self.value, self.spread = model.value, model.spread
        numbers = {"expectile": config.expectile, "inverse_temperature": config.inverse_temperature}
        self.schedulable: dict[str, Any] = numbers
        if self._dropout:
            raise ConfigError("[model] dropout: iql has none; leave it out")

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics."""
        result: dict[str, Tensor] = {}
        if asked("loss_critics", names):
            with torch.no_grad():
                target = self._returns(minibatch, self.value(minibatch["next", "observation"]))
            result |= self._critics_loss(minibatch, target)
        if not (asked("loss_value", names) or asked("loss_actor", names)):
            return result
        observation, unit = minibatch["observation"], self._box.to_unit(minibatch["action"])
        with torch.no_grad():
            target = self.target_critics.values(observation, unit).amin(0)
        value = self.value(observation)
        if asked("loss_value", names):
            result |= {"loss_value": self._expectile(target - value), "state_value": value.detach().mean()}
        if asked("loss_actor", names):
            result |= self._actor_loss(observation, unit, target - value.detach())
        return result

    def _expectile(self, error: Tensor) -> Tensor:
        expectile = self.schedulable["expectile"]
        above = (error > 0).to(error.dtype)
        weight = 1 - expectile + (2 * expectile - 1) * above
        return torch.mean(weight * error.square())

    def _actor_loss(self, observation: Tensor, unit: Tensor, advantage: Tensor) -> dict[str, Tensor]:
        weight = (self.schedulable["inverse_temperature"] * advantage).exp().clamp(max=_MOST_WEIGHT)
        log_std = self.spread()
        distance = (unit - self.actor.unit(observation)) * (-log_std).exp()
        log_prob = (-0.5 * distance.square() - log_std - _HALF_LOG_TWO_PI).sum(-1, keepdim=True)
        return {"loss_actor": -(weight * log_prob).mean(), "advantage_weight": weight.mean()}
