"""The loss of PQN: how far the values of the actions taken are from what followed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from torch import Tensor, nn

from rlcore.types import Context, Key, Loss


class PQNLoss(nn.Module, Loss):
    """Half the squared error of `Q(s, a)` (Gallici et al., 2024, arXiv 2407.04811, algorithm 1).

    The value target is that of Q(lambda), which the estimator `gae` gives: the critic of the model is the greatest
    action value. Reads `observation`, `action` and `value_target`. Returns `loss_q`, the metric `q_value` (mean value
    of the actions taken), and `td_error` `[sample, 1]`.
    """

    requires = ("q_values",)
    reads: tuple[Key, ...] = ("observation", "action", "value_target")

    class Config(BaseModel, extra="forbid"):
        """Nothing to set: discount and lambda are those of the estimator."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.q_values = model.q_values
        self._first_action = model.first_action

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        taken = (minibatch["action"] - self._first_action).unsqueeze(-1)
        value = self.q_values(minibatch["observation"]).gather(-1, taken)
        error = minibatch["value_target"] - value
        return {
            "loss_q": 0.5 * error.square().mean(),
            "q_value": value.detach().mean(),
            "td_error": error.detach(),
        }
