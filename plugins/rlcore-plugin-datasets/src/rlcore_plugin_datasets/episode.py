"""One episode, and what can be wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.envs import ACTION_MASK, Packed, forbidden, without_choice

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array, BoolArray

# what an episode has for each of its steps
ARRAYS: Final = ("observations", "actions", "rewards", "terminations", "truncations")


@dataclass(frozen=True)
class Episode:
    """One episode of T steps.

    Attributes:
        observations: `[T + 1, *shape]`, the last one included.
        actions: `[T, *shape]`, in the units of the env.
        rewards: `[T]`, float.
        terminations: `[T]`, bool.
        truncations: `[T]`, bool.
        seed: with which the env was reset; None where nobody knows.
        infos: of each observation, `[T + 1, ...]` by name, numbers or texts; only where they were asked for.
    """

    observations: Array
    actions: Array
    rewards: Array
    terminations: BoolArray
    truncations: BoolArray
    seed: int | None = None
    infos: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def return_(self) -> float:
        """The sum of the rewards."""
        return float(np.asarray(self.rewards, dtype=np.float64).sum())

    def returns_to_go(self, gamma: float) -> Array:
        """Return the discounted sum of the rewards from each step to the last one, `[T]`, float64."""
        running, sums = 0.0, []
        for reward in reversed(self.rewards.tolist()):
            running = reward + gamma * running
            sums.append(running)
        return np.array(sums[::-1], dtype=np.float64)

    @property
    def ends(self) -> bool:
        """Whether its last step terminated or truncated it."""
        return bool(self.terminations[-1] or self.truncations[-1])


def problems(episode: Episode, spaces: tuple[gymnasium.Space[Any], gymnasium.Space[Any]]) -> Iterator[str]:
    """Yield what is wrong with an episode, each with its step; what comes first for each of its arrays.

    Args:
        episode: to look at.
        spaces: of one observation and of one action.
    """
    steps = len(episode)
    if not steps:
        yield "it has no step"
        return
    lengths = {
        "observations": len(episode.observations) - 1,
        "actions": len(episode.actions),
        "terminations": len(episode.terminations),
        "truncations": len(episode.truncations),
    }
    if wrong := [f"{count} {name}" for name, count in lengths.items() if count != steps]:
        yield f"it has {steps} rewards, and {', '.join(wrong)}; observations are one more than steps"
        return
    outside = [*_of_arrays("observations", episode.observations, spaces[0])]
    outside += _of_arrays("actions", episode.actions, spaces[1])
    yield from outside
    if not outside and isinstance(spaces[0], Packed) and spaces[0].choices:
        yield from _of_masks(episode, spaces[0], spaces[1])
    yield from _not_finite("rewards", episode.rewards)
    over = np.flatnonzero(episode.terminations | episode.truncations)
    if len(over) and over[0] < steps - 1:
        yield f"step {over[0]}: it ends there and goes on; an episode ends at its last step"
    elif not episode.ends:
        yield f"step {steps - 1}: it has no end, as its last step neither terminates nor truncates it"


def _of_arrays(name: str, array: Array, space: gymnasium.Space[Any]) -> Iterator[str]:
    if array.shape[1:] != (space.shape or ()):
        yield f"its {name} have the shape {list(array.shape[1:])}, their space has {list(space.shape or ())}"
    elif isinstance(space, Packed):
        for leaf in space.leaves:
            yield from _of_values(f"{name} (leaf {leaf!r})", space.array(array, leaf), space.held(leaf))
    else:
        yield from _of_values(name, array, space)


def _of_values(name: str, array: Array, space: gymnasium.Space[Any]) -> Iterator[str]:
    from gymnasium import spaces

    found = list(_not_finite(name, array))
    yield from found
    if found:
        return
    low: Any
    high: Any
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
    elif isinstance(space, spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    elif isinstance(space, spaces.MultiBinary):
        low, high = 0, 1
    else:
        return
    outside = (array < low) | (array > high)
    if outside.any():
        step = int(np.argwhere(outside)[0][0])
        yield f"step {step}: {name} {array[step].tolist()} are outside of {space}"


def _of_masks(episode: Episode, space: Packed, actions: gymnasium.Space[Any]) -> Iterator[str]:
    """Yield the first step whose mask allows nothing, or forbids what was done."""
    acted_on = episode.observations[:-1]
    stuck = without_choice(space, acted_on)
    if stuck.any():
        yield f"step {int(stuck.argmax())}: its {ACTION_MASK} allows no action"
        return
    wrong = forbidden(space, actions, acted_on, episode.actions)
    if wrong.any():
        step = int(wrong.argmax())
        yield f"step {step}: its {ACTION_MASK} forbids the action {episode.actions[step].tolist()}"


def _not_finite(name: str, array: Array) -> Iterator[str]:
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        yield f"step {int(np.argwhere(~np.isfinite(array))[0][0])}: {name} are not finite"
