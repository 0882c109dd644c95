"""Spaces wide enough for all agents of a game whose own spaces differ, and what each agent has of them.

A vector env has one array of observations and one of actions. Where the agents of a game see and do different things,
each row of such an array begins with what its agent has, flattened, and ends in zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore import ConfigError
from rlcore.envs import Packed, observation_dtype
from rlcore.types import AgentSpec

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array


class AgentSpaces:
    """The spaces of a game, from those of its agents.

    Args:
        agents: of one game, in the order of their envs.
        name: of the env, for messages.

    Attributes:
        observation_space: of a vector env of such games, and
        action_space: the same of its actions; those of the agents where they are all alike.

    Raises:
        ConfigError: observations are not arrays, or spaces of actions are of kinds that no array holds together.
    """

    def __init__(self, agents: Sequence[AgentSpec], name: str) -> None:
        from gymnasium.spaces import Box

        for agent in agents:
            if not isinstance(agent.observation_space, Box | Packed):
                space = agent.observation_space
                raise ConfigError(f"[env] id = {name!r}: observations are {space}; they have to be one array, a Box")
        self._observations = [agent.observation_space for agent in agents]
        self._actions = [agent.action_space for agent in agents]
        self.observation_space = _joint(self._observations, observation_dtype)
        try:
            self.action_space = _joint(self._actions, lambda space: np.dtype(np.float32))
        except TypeError as error:
            raise ConfigError(f"[env] id = {name!r}: {error}; wrap the game, so that it takes others") from None

    def write(self, row: Array, agent: int, observation: Any) -> None:
        """Write what an agent sees into its row, `[*shape]` of `observation_space`."""
        space = self._observations[agent]
        if space.shape == row.shape:
            row[...] = observation
        else:
            row[: math.prod(space.shape or ())] = np.asarray(observation).reshape(-1)

    def action(self, row: Any, agent: int) -> Any:
        """Return the action of an agent, of its own space, from its row, `[*shape]` of `action_space`."""
        space = self._actions[agent]
        if space == self.action_space:
            return row
        if space.shape != np.shape(row):
            row = row[: math.prod(space.shape or ())].reshape(space.shape or ())
        return np.asarray(row).astype(space.dtype)


def _joint(spaces: Sequence[gymnasium.Space[Any]], dtype_of: Any) -> gymnasium.Space[Any]:
    """Return the one space that all have, or a space of arrays wide enough for each.

    Raises:
        TypeError: one of them is no array of a fixed size.
    """
    from gymnasium.spaces import Box, Discrete

    first = spaces[0]
    if all(space == first for space in spaces):
        return first
    if all(isinstance(space, Discrete) for space in spaces):
        begin = min(int(space.start) for space in spaces)  # type: ignore[attr-defined]
        end = max(int(space.start + space.n) for space in spaces)  # type: ignore[attr-defined]
        return Discrete(end - begin, start=begin)
    limits = [_limits(space) for space in spaces]
    dtype = np.result_type(*(dtype_of(space) for space in spaces))
    if len({space.shape for space in spaces}) == 1:
        low, high = np.min([low for low, _ in limits], 0), np.max([high for _, high in limits], 0)
        return Box(np.asarray(low, dtype), np.asarray(high, dtype), dtype=dtype.type)
    width = max(math.prod(space.shape or ()) for space in spaces)
    least, most = min(low.min(initial=0) for low, _ in limits), max(high.max(initial=0) for _, high in limits)
    return Box(dtype.type(least), dtype.type(most), (width,), dtype.type)


def _limits(space: gymnasium.Space[Any]) -> tuple[Array, Array]:
    """Return the least and the largest element of a space, `[*shape]`.

    Raises:
        TypeError: it is no array of numbers.
    """
    from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

    if isinstance(space, Box):
        return space.low, space.high
    if isinstance(space, Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1)
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, MultiBinary):
        return np.zeros(space.shape), np.ones(space.shape)
    raise TypeError(f"agents act in different spaces, among them {space}, which is no array of numbers")
