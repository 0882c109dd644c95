"""A policy for envs that number their actions from another number than 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from rlcore_plugin_mlp.leaves import ActionMask
from torch import Tensor

from rlcore.types import Key, Progress
from rlcore_plugin_dqn.policy import Epsilon, EpsilonGreedy


class NumbersActions(Protocol):
    """A model with discrete actions.

    Attributes:
        first_action: the number of the first action of the env.
    """

    first_action: int


class MasksActions(Protocol):
    """A model for observations with a mask of actions.

    Attributes:
        action_mask: reads the mask of allowed actions from observations; None without one.
    """

    action_mask: ActionMask | None


class Shifted:
    """Adds the number of the first action to the actions of a policy.

    Args:
        policy: counts actions from 0.
        first_action: the number of the first action of the env.

    Attributes:
        schedulable: `epsilon` of the policy.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, policy: EpsilonGreedy, first_action: int) -> None:
        self._policy = policy
        self._first_action = first_action
        self.schedulable: Epsilon = policy.schedulable

    @property
    def epsilon(self) -> float:
        """Fraction of random actions in the current batch."""
        return self._policy.epsilon

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch."""
        return self._policy.draw(steps, num_envs, generator)

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the random actions, int64 `[time, env]`, and in which steps all are random; or None."""
        foretold = self._policy.foretold(noise)
        return None if foretold is None else (foretold[0] + self._first_action, foretold[1])

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, twice: `describe` needs no parameters."""
        action = self._policy.act(observation, noise)[0] + self._first_action
        return action, action

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing, as the losses need the transition alone."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the greedy actions, int64 `[env]`."""
        return self._policy.mode(observation) + self._first_action

    def follow(self, progress: Progress) -> None:
        """Follow other clocks, such as those of a trainer that is built after the policy."""
        self._policy.follow(progress)

    def refresh(self) -> None:
        """Set epsilon for the frames so far, and take the current weights."""
        self._policy.refresh()
