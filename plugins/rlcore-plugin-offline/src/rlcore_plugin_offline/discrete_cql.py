"""Conservative Q-learning of discrete actions: DQN whose values are low for what the data do not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from rlcore_plugin_dqn.loss import DQNLoss
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key


class DiscreteCQLLoss(DQNLoss):
    """Conservative Q-learning over DQN (Kumar et al., 2020, arXiv 2006.04779, equation 4, CQL(H)).

    `loss_q` is that of DQN; `loss_conservative` is `conservative_weight` times the mean of `log sum exp Q(s, a) -
    Q(s, a_data)`, over the actions that are allowed. Both move the same network, so one optimizer takes their sum.

    Attributes:
        schedulable: `conservative_weight`.

    Raises:
        ConfigError: the model has noisy layers.
    """

    class Config(DQNLoss.Config):
        """Discrete CQL."""

        conservative_weight: float = Field(
            1.0, ge=0, allow_inf_nan=False, description="weight of the values outside of the data; 0: DQN"
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        if self._noise_size:
            raise ConfigError("[model] noisy: the data explore for discrete-cql; leave noisy layers out")
        self.schedulable: dict[str, Any] = {"conservative_weight": config.conservative_weight}

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the losses and metrics of a minibatch."""
        observation = minibatch["observation"]
        values = self.q_values(observation)
        value = values.gather(-1, self._action_index(minibatch).unsqueeze(-1))
        target, number = self._target(minibatch), value.detach()
        allowed = values if self._mask is None else self._mask(values, observation)
        gap = (allowed.logsumexp(-1, keepdim=True) - value).mean()
        return {
            "loss_q": self._mean_error(value, target, minibatch),
            "loss_conservative": self.schedulable["conservative_weight"] * gap,
            "q_value": number.mean(),
            "conservative_gap": gap.detach(),
            "td_error": target - number,
        }
