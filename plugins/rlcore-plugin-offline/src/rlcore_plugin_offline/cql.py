"""Conservative Q-learning of continuous actions: SAC whose critics are low where there are no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import torch
from pydantic import Field
from rlcore_plugin_sac.actors import squashed_sample
from rlcore_plugin_sac.sac import SACLoss
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key

UNIFORM: Final = "conservative_uniform"
NOISE: Final = "conservative_noise"


class CQLLoss(SACLoss):
    """Conservative Q-learning (Kumar et al., 2020, arXiv 2006.04779, equation 4, CQL(H)), over SAC.

    `loss_critics` has `conservative_weight` times the mean of `log sum exp Q(s, a) - Q(s, a_data)` besides the squared
    error, which is whole as in the authors' code: equation 4 halves it. The sum is over `conservative_samples` actions
    each that are uniform, that the policy takes now, and that it takes in the next observation, each divided by its
    density (appendix F). The target has the entropy of the next action only with `backup_entropy`. Everything else is
    as in `rlcore_plugin_sac.sac.SACLoss`; with the critics comes the metric `conservative_gap`.

    Raises:
        ConfigError: the model has dropout, or the target a subset of critics.
    """

    takes_memory = False
    error_scale = 1.0

    class Config(SACLoss.Config):
        """CQL."""

        conservative_weight: float = Field(
            5.0, ge=0, allow_inf_nan=False, description="weight of the values outside of the data; 0: none"
        )
        conservative_samples: int = Field(10, ge=1, description="actions of each of the three kinds")
        backup_entropy: bool = Field(False, description="whether the target has the entropy of the next action")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        if self._dropout:
            raise ConfigError("[model] dropout: cql has none; leave it out")
        self.schedulable["conservative_weight"] = config.conservative_weight
        self._samples = config.conservative_samples
        self._backup_entropy = config.backup_entropy

    def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return what SAC takes, and uniform actions and noise, `[number, sample, action]` and twice that."""
        shape, device = (self._samples, samples, self._box.size), generator.device
        uniform = torch.empty(shape, device=device).uniform_(-1, 1, generator=generator)
        noise = torch.randn((2, *shape), generator=generator, device=device)
        return {UNIFORM: uniform, NOISE: noise, **super().sample_noise(samples, generator)}

    def _with_entropy(self, values: Tensor, log_prob: Tensor) -> Tensor:
        return super()._with_entropy(values, log_prob) if self._backup_entropy else values

    def _critics_loss(self, minibatch: Mapping[Key, Tensor], target: Tensor) -> dict[str, Tensor]:
        result = super()._critics_loss(minibatch, target)
        gap = self._gap(minibatch)
        result["loss_critics"] = result["loss_critics"] + self.schedulable["conservative_weight"] * gap.sum()
        result["conservative_gap"] = gap.detach().mean()
        return result

    def _gap(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return, by critic, how much higher values are than those of the data, `[critic]`."""
        observation, uniform = minibatch["observation"], minibatch[UNIFORM]
        units, densities = [uniform], [uniform.new_full((*uniform.shape[:2], 1), -self._box.size * math.log(2))]
        with torch.no_grad():
            for seen, noise in zip((observation, minibatch["next", "observation"]), minibatch[NOISE], strict=True):
                unit, log_prob = squashed_sample(self.actor(seen), noise)  # of each observation once, for all samples
                units.append(unit)
                densities.append(log_prob)
        values = self.critics.values_of_many(observation, torch.cat(units)) - torch.cat(densities)
        data = self.critics.values(observation, self._box.to_unit(minibatch["action"]))
        return (values.logsumexp(1) - data).mean((1, 2))
