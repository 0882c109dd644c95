"""The model of IQL: a deterministic actor with a spread for its loss, critics, and a network of the value of states."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from rlcore_plugin_mlp.networks import Networks
from rlcore_plugin_sac.model import ActorCriticModel
from torch import Tensor, nn

from rlcore.types import Context


class Spread(nn.Module):
    """Logarithms of the standard deviations of the actor's distribution `[action]`, the same for all observations.

    Args:
        actions: how many.
        bounds: the least and the largest.
    """

    def __init__(self, actions: int, bounds: tuple[float, float]) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.zeros(actions))
        self._bounds = bounds

    def forward(self) -> Tensor:
        """Return the logarithms, inside their bounds."""
        return self.log_std.clamp(*self._bounds)


class IQLModel(ActorCriticModel):
    """`actor`, `spread`, `critics`, `target_critics` and `value`, observations to the value of states `[..., 1]`.

    The actor is deterministic in evaluations. Its loss takes a normal distribution around its actions, scaled to
    [-1, 1], of standard deviations that are learned, as in the code of the paper (Kostrikov et al., 2022, arXiv
    2110.06169). Where its actions are collected too, they have noise as those of TD3 have.
    """

    class Config(ActorCriticModel.Config):
        """Shapes of the networks, and how the policy explores."""

        actor: Literal["deterministic"] = Field("deterministic", description="deterministic: the only one there is")
        least_log_std: float = Field(-5.0, allow_inf_nan=False, description="least log standard deviation in the loss")
        largest_log_std: float = Field(2.0, allow_inf_nan=False, description="the largest one")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        networks: Any = Networks.of(config, context.env_spec.observation_space, context.seed("value encoder"))
        self.value: nn.Module = networks.network(1, 1.0, torch.Generator().manual_seed(context.seed("value")))
        self.spread = Spread(self.box.size, (config.least_log_std, config.largest_log_std))

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return (*super().parts(), "value", "spread")
