"""The losses of TD3 and DDPG, whose actors are deterministic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_sac.critics import first
from rlcore_plugin_sac.loss import IN_TURN, ActorCriticConfig, ActorCriticLoss, asked


class DDPGConfig(ActorCriticConfig):
    """DDPG; as published, the actor follows the critics that this update left (algorithm 1 of both papers)."""

    in_turn: bool = Field(True, description=IN_TURN)


class DDPGLoss(ActorCriticLoss):
    """Deep deterministic policy gradient (Lillicrap et al., 2016, arXiv 1509.02971, algorithm 1).

    `loss_critics` is the mean squared error of the one critic, `loss_actor` minus the mean value of the actor's own
    actions. Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are
    there, also `steps_to_next_obs` and `priority_weight`. With `loss_critics` come the metrics `q_value` and `td_error`
    `[sample, 1]`, the absolute error. With memory it reads sequences, as `SACLoss` does.

    Attributes:
        takes_memory: True.

    Raises:
        ConfigError: the model has several critics.
    """

    takes_memory = True
    requires = ("actor", "critics", "target_actor", "target_critics")
    Config: type[DDPGConfig] = DDPGConfig

    def __init__(self, config: DDPGConfig, context: Context) -> None:
        super().__init__(config, context, [("critics", "target_critics"), ("actor", "target_actor")])
        model: Any = context.model
        self.target_actor = model.target_actor
        self._check_noise()

    def _check_noise(self) -> None:
        """See that the settings fit, and whether anything is random."""
        if self.critics.critics > 1:
            raise ConfigError(f"[loss] ddpg has one critic: set [model] critics = 1, not {self.critics.critics}")
        if self._dropout:  # a learner keeps a generator for a loss that has the method
            self.sample_noise = self._masks  # type: ignore[method-assign]

    def losses(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None) -> dict[str, Tensor]:
        """Return the losses that are asked for and their metrics."""
        result: dict[str, Tensor] = {}
        if asked("loss_critics", names):
            result |= self._critics_loss(minibatch, self._target(minibatch))
        if asked("loss_actor", names):
            result["loss_actor"] = self._actor_loss(minibatch)
        return result

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the target of the critics, `[sample, 1]`: by the least of their targets."""
        unit = self._next_unit(minibatch)
        critics, inputs = self.at("target_critics", minibatch, following=True)
        values = critics.values(inputs, unit, masks=self._dropped(minibatch, 0))
        return self._returns(minibatch, values.amin(0))

    def _next_unit(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the next actions, scaled to [-1, 1]."""
        actor, inputs = self.at("target_actor", minibatch, following=True)
        return actor.unit(inputs)  # type: ignore[no-any-return]

    def _actor_loss(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        masks = self._dropped(minibatch, 2)
        if masks is not None:
            masks = [mask[:1] for mask in masks]
        actor, inputs = self.at("actor", minibatch)
        unit = actor.unit(inputs)
        critics, inputs = self.at("critics", minibatch, moved=False)
        return -self.mean(critics.values(inputs, unit, first, masks), minibatch)


class TD3Loss(DDPGLoss):
    """Twin delayed DDPG (Fujimoto et al., 2018, arXiv 1802.09477, algorithm 1).

    The target takes the least value of all target critics, at the target actor's action with clipped noise; the actor
    follows the first critic. `loss_critics` is the mean squared error, summed over the critics. Reads and returns what
    `DDPGLoss` does; `td_error` is the largest absolute error of the critics. The delay of the actor is a key of
    its optimizer, `every = 2`, and that of the targets `target_interval`.

    Attributes:
        schedulable: `target_noise`.
    """

    class Config(DDPGConfig):
        """TD3."""

        target_interval: int = Field(2, ge=1, description="optimisation steps between two updates of the targets")
        target_noise: float = Field(
            0.2, ge=0, le=1, description="standard deviation of the noise of target actions, in halves of the range"
        )
        target_noise_clip: float = Field(0.5, ge=0, le=2, description="the most of that noise, in halves of the range")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self.schedulable: dict[str, Any] = {"target_noise": config.target_noise}
        self._clip = config.target_noise_clip

    def _check_noise(self) -> None:
        self.sample_noise = self._sample_noise  # type: ignore[method-assign]

    def _sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return `("next", "noise")`, standard normal `[sample, action]`, and what dropout leaves."""
        noise = torch.randn(samples, self._box.size, generator=generator, device=generator.device)
        return {("next", "noise"): noise, **self._masks(samples, generator)}

    def _next_unit(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        noise = minibatch["next", "noise"] * self.schedulable["target_noise"]
        smoothed: Tensor = super()._next_unit(minibatch) + noise.clamp(-self._clip, self._clip)
        return smoothed.clamp(-1, 1)
