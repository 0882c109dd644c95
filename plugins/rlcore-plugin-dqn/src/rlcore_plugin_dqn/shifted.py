"""Actions that are numbered from another number than 0: the policy gives the env's, the networks count from 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from rlcore_plugin_mlp.leaves import ActionMask
from torch import Tensor

from rlcore.types import Key, Progress
from rlcore_plugin_dqn.policy import Epsilon, EpsilonGreedy


class NumbersActions(Protocol):
    """A model whose actions are numbered.

    Attributes:
        first_action: the number of the first one.
    """

    first_action: int


class MasksActions(Protocol):
    """A model whose observations say which actions are allowed.

    Attributes:
        action_mask: in the observations; None where all actions are allowed.
    """

    action_mask: ActionMask | None


class Shifted:
    """A policy whose actions are further by a number than those of another.

    Args:
        policy: the other, with actions from 0 on.
        first_action: the number.

    Attributes:
        schedulable: that of the other.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, policy: EpsilonGreedy, first_action: int) -> None:
        self._policy = policy
        self._first = first_action
        self.schedulable: Epsilon = policy.schedulable

    @property
    def epsilon(self) -> float:
        """The fraction of random actions in the batch that is collected now."""
        return self._policy.epsilon

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample for a batch, as the other does."""
        return self._policy.draw(steps, num_envs, generator)

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the random actions, int64 `[time, env]`, and in which steps all are random, where the other does."""
        told = self._policy.foretold(noise)
        return None if told is None else (told[0] + self._first, told[1])

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, and the same again: nothing more is to be described."""
        action = self._policy.act(observation, noise)[0] + self._first
        return action, action

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the losses need no more than the transition."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the greedy actions, int64 `[env]`."""
        return self._policy.mode(observation) + self._first

    def follow(self, progress: Progress) -> None:
        """Let epsilon fall with other clocks, as those of a trainer that is built later."""
        self._policy.follow(progress)

    def refresh(self) -> None:
        """Set epsilon for the frames collected so far, and follow the weights."""
        self._policy.refresh()
