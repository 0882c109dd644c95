"""Behaviour cloning: the policy learns to act as the data do, as in supervised learning."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from pydantic import BaseModel
from torch import Tensor, nn

from rlcore.learners import inputs_of, mean_of
from rlcore.types import FIRST, POLICY_STATE, Context, Key, Loss, has_memory, offers


class _Deterministic(Protocol):
    """An actor without a distribution; its actions are scaled to [-1, 1]."""

    def unit(self, observation: Tensor) -> Tensor:
        """Return actions `[sample, action]`."""
        ...


class CloningLoss(nn.Module, Loss):
    """Minus the mean log-probability of the data's actions (Pomerleau, 1991); of an actor without one, a squared error.

    With the actor of `sac:actor-critic` and `actor = "deterministic"` it is the squared error of actions that are
    scaled to [-1, 1], a mean over samples and actions. Reads `observation` and `action`; of a policy with a state,
    stretches of them with the state before each, of which masked steps do not count. Returns `loss_actor`, and the
    metric `log_prob`, or `error`. Masked actions have no probability, so that data which take one give an infinite
    loss.
    """

    requires = ("actor",)
    loss_names = ("loss_actor",)
    gives_td_error = False
    takes_memory = True
    reads: tuple[Key, ...] = ("observation", "action")

    class Config(BaseModel, extra="forbid"):
        """There is nothing to set."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.actor = model.actor
        self._box = model.box if offers(model.actor, _Deterministic) else None
        self._inputs, self._mean = inputs_of(model), mean_of(model)
        if has_memory(model):
            self.reads = (*self.reads, POLICY_STATE, FIRST)

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the loss and the metric of a minibatch; nothing where others are asked for."""
        if names is not None and "loss_actor" not in names:
            return {}
        inputs, action = self._inputs(minibatch), minibatch["action"]
        if self._box is not None:
            error = (self.actor.unit(*inputs) - self._box.to_unit(action)).square().mean()
            return {"loss_actor": error, "error": error.detach()}
        log_prob = self._mean(self.actor.distribution.log_prob(self.actor(*inputs), action), minibatch)
        return {"loss_actor": -log_prob, "log_prob": log_prob.detach()}
