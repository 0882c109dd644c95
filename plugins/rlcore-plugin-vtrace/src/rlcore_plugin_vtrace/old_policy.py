"""The policy from which one that is trained may not go far: a copy of its network that follows slowly."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, Protocol

from torch import nn

from rlcore.learners import TargetUpdater
from rlcore.types import Key

# log-probabilities of the actions of a batch under the policy of its importance weights, `[env, time, 1]`
OLD_LOG_PROB: Final[Key] = "old_log_prob"


class WithOldPolicy(Protocol):
    """A loss that says under which policy importance weights are computed."""

    def old_policy(self) -> nn.Module | None:
        """Return that policy, an actor with a `distribution`; None for the one that is trained."""
        ...


class OldPolicy(TargetUpdater):
    """An actor and a copy of it that is moved towards it, and saved with the learner.

    No update computes with the copy, so it is neither a part of the model nor of the loss.

    Args:
        actor: the one that is trained.
        interval: optimisation steps between two moves.
        tau: how far a move goes; 1 copies.
    """

    def __init__(self, actor: nn.Module, interval: int, tau: float) -> None:
        self._actor, self._copy_of_actor = actor, copy.deepcopy(actor)
        super().__init__([(actor, self._copy_of_actor)], interval, tau)

    def actor(self) -> nn.Module:
        """Return the copy. Before the first step it is the actor as it is now, whose weights may have been loaded."""
        if self.steps == 0:
            self._copy_of_actor.load_state_dict(self._actor.state_dict())
        return self._copy_of_actor

    def state_dict(self) -> dict[str, Any]:
        """Return the count of steps and the weights of the copy."""
        return {**super().state_dict(), "weights": self._copy_of_actor.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set both."""
        super().load_state_dict(state)
        self._copy_of_actor.load_state_dict(state["weights"])
