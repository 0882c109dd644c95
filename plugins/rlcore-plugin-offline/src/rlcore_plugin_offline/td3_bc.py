"""TD3+BC: the values of TD3, and an actor that is kept near the data."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import Field
from rlcore_plugin_sac.critics import first
from rlcore_plugin_sac.td3 import TD3Loss
from torch import Tensor

from rlcore.types import Context, Key


class TD3BCLoss(TD3Loss):
    """TD3 with a term of behaviour cloning (Fujimoto and Gu, 2021, arXiv 2106.06860, equations 3 to 5).

    The actor minimises `-lambda * Q(s, pi(s)) + (pi(s) - a)^2`, where `lambda = alpha / mean |Q(s, pi(s))|` has no
    gradient and the squared error is a mean over samples and actions, of actions scaled to [-1, 1]. The critics learn
    as those of TD3. Reads and returns what `rlcore_plugin_sac.td3.TD3Loss` does; the actor's optimizer has
    `every = 2`. The paper standardises observations: the transform `running-observation-norm` learns from the data.

    Attributes:
        schedulable: `alpha` and `target_noise`.
    """

    takes_memory = False

    class Config(TD3Loss.Config):
        """TD3+BC."""

        alpha: float = Field(
            2.5, ge=0, allow_inf_nan=False, description="weight of the value against nearness to the data; 0: cloning"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self.schedulable["alpha"] = config.alpha

    def _actor_loss(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        observation = minibatch["observation"]
        unit = self.actor.unit(observation)
        masks = self._dropped(minibatch, 2)
        if masks is not None:
            masks = [mask[:1] for mask in masks]
        value = self.critics.values(observation, unit, first, masks)
        weight = self.schedulable["alpha"] / value.detach().abs().mean()
        error = (unit - self._box.to_unit(minibatch["action"])).square().mean()
        return torch.sub(error, weight * value.mean())
