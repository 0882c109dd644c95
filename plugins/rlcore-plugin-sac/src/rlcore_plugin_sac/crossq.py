"""The loss of CrossQ: SAC without target networks, by batch renormalisation over both ends of a transition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_sac.critics import frozen
from rlcore_plugin_sac.entropy import BoundedSoftLoss, FixedTemperature, default_entropy
from rlcore_plugin_sac.loss import TRANSITION, asked, critics_loss, returns
from rlcore_plugin_sac.normalised import NormalisedCritics


class CrossQLoss(BoundedSoftLoss):
    """SAC whose critics value `(s, a)` and `(s', a')` in one joint batch (Bhatt et al., 2024, arXiv 1902.05605).

    Algorithm 1 of version 4: no target networks; the statistics of the batch are those of both ends together, and the
    values of the second have no gradient. `loss_critics` is half the squared error, summed over the critics;
    `loss_actor` and `loss_temperature` are those of SAC. The actor that is trained normalises by its batch, and moves
    its running statistics; the critics that value its actions use theirs, as does the actor for the next actions. Each
    loss has the same value whichever of them are asked for: statistics move after all have been read.

    Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. With `loss_critics` come the metrics `q_value` and `td_error`
    `[sample, 1]`, the largest absolute error of the critics; with `loss_actor` comes `entropy`, and with
    `loss_temperature` `temperature`.

    Raises:
        ConfigError: the model has no batch renormalisation; several processes train together, whose statistics would
            differ.
    """

    class Config(BaseModel, extra="forbid"):
        """CrossQ."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        temperature: FixedTemperature = Field(
            "auto", description="weight of the entropy; auto: learned, so that the entropy is the target's"
        )
        target_entropy: float | None = Field(
            None, allow_inf_nan=False, description="the entropy to keep; default: minus the number of actions"
        )

    requires = ("actor", "critics", "temperature")
    reads: tuple[Key, ...] = TRANSITION

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        if not isinstance(model.critics, NormalisedCritics):
            raise ConfigError('[loss] crossq needs critics with batch renormalisation; set [model] use = "sac:crossq"')
        if context.group.size > 1:
            raise ConfigError(
                "[loss] crossq normalises by the minibatch of one process; with several the running statistics would "
                "differ. Train in one process"
            )
        self.actor = model.actor
        self.critics = model.critics
        self._box = model.box
        self._gamma = config.gamma
        self.keep_temperature(model.temperature, config, default_entropy(config.target_entropy, self._box.size))

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics; statistics move."""
        critics, actor = asked("loss_critics", names), asked("loss_actor", names)
        temperature = self._learns and asked("loss_temperature", names)
        result: dict[str, Tensor] = {}
        following = self._following(minibatch) if critics else None  # before the actor's statistics move
        if actor:
            loss, entropy = self._actor_loss(minibatch)
            result |= {"loss_actor": loss, "entropy": entropy}
        elif temperature:
            with torch.no_grad():
                entropy = self._actor_loss(minibatch)[1]
        if temperature:
            result |= self.temperature_loss(entropy)
        if following is None:
            return result
        return self._critics_loss(minibatch, *following) | result

    @torch.no_grad()
    def _following(self, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the next actions and their log-densities, by the running statistics of the actor."""
        return self.actor.rsample(minibatch["next", "observation"], minibatch["next", "noise"])  # type: ignore[no-any-return]

    def _actor_loss(self, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the loss, and the mean entropy without gradients."""
        observation = minibatch["observation"]
        unit, log_prob = self.actor.rsample(observation, minibatch["noise"], update=True)
        value = self.critics.values(observation, unit, frozen).amin(0)
        return (self.alpha() * log_prob - value).mean(), -log_prob.detach().mean()

    def _critics_loss(self, minibatch: Mapping[Key, Tensor], unit: Tensor, log_prob: Tensor) -> dict[str, Tensor]:
        """Return the loss and its metrics, by one pass over both ends.

        Args:
            minibatch: entries.
            unit: the next actions, scaled to [-1, 1].
            log_prob: of those.
        """
        observations = torch.cat([minibatch["observation"], minibatch["next", "observation"]])
        actions = torch.cat([self._box.to_unit(minibatch["action"]), unit])
        values, following = self.critics.normalised(observations, actions, update=True).chunk(2, 1)
        with torch.no_grad():
            target = returns(minibatch, self._gamma, following.amin(0) - self.alpha() * log_prob)
        return critics_loss(minibatch, values, target, 0.5)
