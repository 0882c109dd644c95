"""The state of a policy carried through episodes that are played, where nothing is kept of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from rlcore.types import StatefulPolicy, offers

if TYPE_CHECKING:
    from rlcore.types import BoolArray


class Playing(Protocol):
    """How a policy is played, with or without a state."""

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, *action]` for observations `[env, *shape]`, and what `describe` needs."""
        ...

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions `[env, *action]` for observations `[env, *shape]`."""
        ...


class Carrying:
    """A policy with a state, called as one without; an episode begins with the first call in each env.

    Args:
        policy: has a state.
        num_envs: how many envs there are.

    Attributes:
        state: `[env, *state]`, with which the next call begins.
        first: `[env]`, where an episode begins with the next call.
    """

    def __init__(self, policy: Any, num_envs: int) -> None:
        self._policy = policy
        self.state: Tensor = policy.initial_state(num_envs)
        self.first = torch.ones(num_envs, dtype=torch.bool, device=self.state.device)

    def begin(self, envs: BoolArray) -> None:
        """Let episodes begin with the next call in these envs, `[env]`."""
        self.first = self.first | torch.from_numpy(envs).to(self.first.device)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and what `describe` needs."""
        action, parameters, self.state = self._policy.act(observation, noise, self.state, self.first)
        self.first = torch.zeros_like(self.first)
        return action, parameters

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions."""
        action, self.state = self._policy.mode(observation, self.state, self.first)
        self.first = torch.zeros_like(self.first)
        return action  # type: ignore[no-any-return]


def carried(policy: Any, num_envs: int) -> Playing:
    """Return how a policy is called through one episode in each env: itself where it has no state."""
    return Carrying(policy, num_envs) if offers(policy, StatefulPolicy) else policy
