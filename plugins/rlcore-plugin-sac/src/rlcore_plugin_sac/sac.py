"""The loss of SAC; REDQ and DroQ are settings of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_sac.critics import frozen, members, whole
from rlcore_plugin_sac.entropy import BoundedSoftLoss, FixedTemperature, default_entropy
from rlcore_plugin_sac.health import outweighed_entropy
from rlcore_plugin_sac.loss import ActorCriticConfig, ActorCriticLoss, asked
from rlcore_plugin_sac.norms import Take


class SACLoss(BoundedSoftLoss, ActorCriticLoss):
    """Soft actor-critic (Haarnoja et al., 2018, arXiv 1801.01290; the temperature as in arXiv 1812.05905).

    `loss_critics` is half the squared error of equation 5 of 1812.05905, summed over the critics; `loss_actor` that of
    equation 9; `loss_temperature` that of equation 18, by the logarithm of the temperature. The value in the target is
    the least of all critics, or of `target_subset` of them, the same for all samples and chosen again in each update;
    with a subset the actor's loss takes the mean of all critics instead of the least (Chen et al., 2021, arXiv
    2101.05982, algorithm 1). Entropies are those of actions scaled to [-1, 1], whatever the bounds.

    Reads `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. With `loss_critics` come the metrics `q_value` and `td_error`
    `[sample, 1]`, the largest absolute error of the critics; with `loss_actor` comes `entropy`, and with
    `loss_temperature` `temperature`.

    With memory it reads sequences instead, as the buffer `replay:sequences` has them: `first`, `policy_state`, the
    mask, `steps_to_next_obs` and `bootstrap_row` besides, and no next observations. The first `burn_in` rows bring the
    memories up to date, those of the targets with the weights of the targets (Kapturowski et al., 2019).

    Attributes:
        takes_memory: True.
        schedulable: `target_entropy`, or `temperature` where it is fixed.
    """

    takes_memory = True
    requires = ("actor", "critics", "target_critics", "temperature")
    error_scale = 0.5

    class Config(ActorCriticConfig):
        """SAC."""

        temperature: FixedTemperature = Field(
            "auto", description="weight of the entropy; auto: learned, so that the entropy is the target's"
        )
        target_entropy: float | None = Field(
            None, allow_inf_nan=False, description="the entropy to keep; default: minus the number of actions"
        )
        target_subset: int | None = Field(
            None, ge=1, description="critics, chosen at random, that make the target; default: all"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context, [("critics", "target_critics")])
        model: Any = context.model
        self.keep_temperature(model.temperature, config, default_entropy(config.target_entropy, self._box.size))
        count = self.critics.critics
        self._subset = config.target_subset
        if self._subset is not None and self._subset > count:
            raise ConfigError(f"[loss] target_subset = {self._subset} is more than [model] critics = {count}")

    def health_checks(self) -> Mapping[str, Callable[[Mapping[str, float], float], str | None]]:
        """Return the checks that the hook `health` makes of a run with this loss; none at a fixed temperature."""
        if not self._learns:
            return {}
        return {"reward-scale": self._check_reward_scale}

    def _check_reward_scale(self, row: Mapping[str, float], largest_reward: float) -> str | None:
        target = self.schedulable["target_entropy"]  # as a schedule left it
        return outweighed_entropy(row, largest_reward, target_entropy=target, size=self._box.size)

    def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return the noise of the actions, what dropout leaves, and the critics of the target.

        Args:
            samples: of the minibatch.
            generator: samples all of them.

        Returns:
            `noise` and `("next", "noise")`, `[sample, action]`; with dropout `dropout_0` and on, one for each hidden
            layer, `[use, critic, sample, size]`; with `target_subset` `target_members`, int64 `[member]`.
        """
        device = generator.device
        now, following = torch.randn(2, samples, self._box.size, generator=generator, device=device).unbind(0)
        entries: dict[Key, Tensor] = {"noise": now, ("next", "noise"): following, **self._masks(samples, generator)}
        if self._subset is not None:
            order = torch.randperm(self.critics.critics, generator=generator, device=device)
            entries["target_members"] = order[: self._subset]
        return entries

    def losses(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None) -> dict[str, Tensor]:
        """Return the losses that are asked for and their metrics."""
        result: dict[str, Tensor] = {}
        if asked("loss_critics", names):
            result |= self._critics_loss(minibatch, self._target(minibatch))
        learns = self._learns and asked("loss_temperature", names)
        if asked("loss_actor", names):
            loss, entropy = self._actor_loss(minibatch)
            result |= {"loss_actor": loss, "entropy": entropy}
        elif learns:
            with torch.no_grad():
                actor, inputs = self.at("actor", minibatch)
                entropy = -self.mean(actor.rsample(inputs, minibatch["noise"])[1], minibatch)
        if learns:
            result |= self.temperature_loss(entropy)
        return result

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the target of the critics, `[sample, 1]`."""
        actor, inputs = self.at("actor", minibatch, following=True)
        unit, log_prob = actor.rsample(inputs, minibatch["next", "noise"])
        masks = self._dropped(minibatch, 0)
        take: Take = whole
        if self._subset is not None:
            take = members(minibatch["target_members"])
            masks = None if masks is None else [take(mask) for mask in masks]
        critics, inputs = self.at("target_critics", minibatch, following=True)
        following = self._of_target(critics.values(inputs, unit, take, masks))
        return self._returns(minibatch, self._with_entropy(following, log_prob))

    def _with_entropy(self, values: Tensor, log_prob: Tensor) -> Tensor:
        """Return what the target takes of the next action, `[sample, number]`: its values and its entropy."""
        return values - self.alpha() * log_prob

    def _of_target(self, values: Tensor) -> Tensor:
        """Return what the target takes of the critics' values `[critic, sample, quantile]`, `[sample, number]`."""
        return values.amin(0)

    def _of_actor(self, values: Tensor) -> Tensor:
        """Return what the actor maximises of the critics' values `[critic, sample, quantile]`, `[sample, 1]`."""
        return values.amin(0) if self._subset is None else values.mean(0)

    def _actor_loss(self, minibatch: Mapping[Key, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the loss, and the mean entropy without gradients."""
        actor, inputs = self.at("actor", minibatch)
        unit, log_prob = actor.rsample(inputs, minibatch["noise"])
        critics, inputs = self.at("critics", minibatch, moved=False)
        values = critics.values(inputs, unit, frozen, self._dropped(minibatch, 2))
        return self.mean(self.alpha() * log_prob - self._of_actor(values), minibatch), -self.mean(
            log_prob.detach(), minibatch
        )
