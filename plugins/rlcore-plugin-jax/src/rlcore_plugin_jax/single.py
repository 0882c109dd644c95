"""What one env is to the vector of them: two functions, of a key and of a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import gymnasium


class Moved(NamedTuple):
    """What one env returns from a step.

    Attributes:
        observation: what the step led to, also where the episode ended.
        state: pytree that the next step depends on.
        reward: one number.
        terminated: whether the episode reached an end of its own.
        truncated: whether the env cut it off.
    """

    observation: Any
    state: Any
    reward: Any
    terminated: Any
    truncated: Any


class SingleEnv(ABC):
    """One env, as functions that JAX traces.

    Attributes:
        observation_space: of the env.
        action_space: of the env.
        max_episode_steps: steps after which an episode is truncated; None for no limit.
    """

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    max_episode_steps: int | None

    @abstractmethod
    def begin(self, key: Any) -> tuple[Any, Any]:
        """Return the first observation of an episode, and its state."""

    @abstractmethod
    def step(self, key: Any, state: Any, action: Any) -> Moved:
        """Return what a step leads to; it begins no episode."""
