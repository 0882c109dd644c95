"""The loss of DQN and of double DQN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore import Context


class DQNLoss(nn.Module):
    """The squared error of one-step targets (Mnih et al., 2015); `double` as van Hasselt et al., 2016."""

    class Config(BaseModel, extra="forbid"):
        """DQN."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        double: bool = Field(False, description="let the Q-network choose the next action and its target value it")

    requires = ("q_values", "target_q_values")
    reads = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.q_values, self.target_q_values = model.q_values, model.target_q_values
        self._gamma, self._double = config.gamma, config.double

    def forward(self, minibatch: Mapping[Any, Tensor]) -> dict[str, Tensor]:
        """Return `loss_q` and the mean value of the actions taken."""
        value = self.q_values(minibatch["observation"]).gather(-1, minibatch["action"].unsqueeze(-1))
        following = minibatch["next", "observation"]
        with torch.no_grad():
            values = self.target_q_values(following)
            chooser = self.q_values(following) if self._double else values
            bootstrap = values.gather(-1, chooser.argmax(-1, keepdim=True))
            target = minibatch["next", "reward"] + self._gamma * bootstrap * ~minibatch["next", "terminated"]
        return {"loss_q": (value - target).square().mean(), "q_value": value.detach().mean()}
