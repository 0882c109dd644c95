"""The loss of PQN: how far the values of the actions taken are from what followed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from torch import Tensor, nn

from rlcore.learners import inputs_of, mean_of
from rlcore.types import FIRST, POLICY_STATE, Context, Key, Loss, has_memory


class PQNLoss(nn.Module, Loss):
    """Half the squared error of `Q(s, a)` (Gallici et al., 2024, arXiv 2407.04811, algorithm 1).

    The value target is that of Q(lambda), which the estimator `gae` gives: the critic of the model is the greatest
    action value. Reads `observation`, `action` and `value_target`. Returns `loss_q`, the metric `q_value` (mean value
    of the actions taken), and `td_error` `[sample, 1]`. With memory it reads `policy_state` and `first` too.

    Attributes:
        takes_memory: True; minibatches for a policy with memory are sequences, and masked steps do not count.
    """

    requires = ("q_values",)
    takes_memory = True
    reads: tuple[Key, ...] = ("observation", "action", "value_target")

    class Config(BaseModel, extra="forbid"):
        """Nothing to set: discount and lambda are those of the estimator."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.q_values = model.q_values
        self._first_action = model.first_action
        self._inputs, self._mean = inputs_of(model), mean_of(model)
        if has_memory(model):
            self.reads = (*self.reads, POLICY_STATE, FIRST)

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        taken = (minibatch["action"] - self._first_action).unsqueeze(-1)
        value = self.q_values(*self._inputs(minibatch)).gather(-1, taken)
        error = minibatch["value_target"] - value
        return {
            "loss_q": 0.5 * self._mean(error.square(), minibatch),
            "q_value": self._mean(value.detach(), minibatch),
            "td_error": error.detach(),
        }
