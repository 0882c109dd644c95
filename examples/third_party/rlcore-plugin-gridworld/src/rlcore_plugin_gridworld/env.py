"""The env: several walkers on one map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field, field_validator
from rlcore import Context, EnvSpec, Step

DEFAULT_MAP: Final = ["....#", ".##.#", ".#G..", ".#.#.", "....."]
# up, right, down, left
MOVES: Final = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])


class Gridworld:
    """A map of free cells `.`, walls `#` and one goal `G`; a walker starts in a random free cell.

    The goal pays 1 and terminates the episode, every other step costs 0.01. A step into a wall or off the map stays
    where it is. After `limit` steps an episode is truncated. The observation is 1 in the walker's cell and 0 in all
    others.
    """

    class Config(BaseModel, extra="forbid"):
        """The map."""

        num_envs: int = Field(4, ge=1, description="walkers that step together")
        map: list[str] = Field(DEFAULT_MAP, min_length=1, description="rows of `.`, `#` and one `G`")
        limit: int = Field(60, ge=1, description="steps after which an episode is cut off")

        @field_validator("map")
        @classmethod
        def _is_a_map(cls, rows: list[str]) -> list[str]:
            text = "".join(rows)
            if len({len(row) for row in rows}) > 1 or set(text) - set(".#G"):
                raise ValueError("a map has rows of one length, made of '.', '#' and 'G'")
            if text.count("G") != 1 or "." not in text:
                raise ValueError("a map has one goal 'G', and a free cell '.' to start in")
            return rows

    def __init__(self, config: Config, context: Context) -> None:
        self._cells = np.array([list(row) for row in config.map])
        self._starts = np.argwhere(self._cells == ".")
        self._limit = config.limit
        self.spec = EnvSpec(
            id="gridworld",
            observation_space=gymnasium.spaces.Box(0.0, 1.0, (self._cells.size,), np.float32),
            action_space=gymnasium.spaces.Discrete(len(MOVES)),
            num_envs=config.num_envs,
            max_episode_steps=config.limit,
        )
        self._generators = [np.random.default_rng(index) for index in range(config.num_envs)]
        self._places = np.zeros((config.num_envs, 2), dtype=np.int64)
        self._elapsed = np.zeros(config.num_envs, dtype=np.int64)

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Reset every walker, walker `i` with `seed + i`."""
        for index in range(self.spec.num_envs):
            if seed is not None:
                self._generators[index] = np.random.default_rng(seed + index)
            self._begin(index)
        return self._observation()

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Move every walker; one that ended starts over in the same step."""
        self._elapsed += 1
        wanted = np.clip(self._places + MOVES[action], 0, np.array(self._cells.shape) - 1)
        free = self._cells[wanted[:, 0], wanted[:, 1]] != "#"
        self._places = np.where(free[:, None], wanted, self._places)
        terminated = self._cells[self._places[:, 0], self._places[:, 1]] == "G"
        truncated = (self._elapsed >= self._limit) & ~terminated
        last = self._observation()
        ended = np.flatnonzero(terminated | truncated).tolist()
        for index in ended:
            self._begin(index)
        finals = {index: last[index] for index in ended}
        return Step(self._observation(), np.where(terminated, 1.0, -0.01), terminated, truncated, finals, {})

    def close(self) -> None:
        """Do nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return where every walker is, and its generator."""
        return {
            "generators": [generator.bit_generator.state for generator in self._generators],
            "places": self._places,
            "elapsed": self._elapsed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put every walker where it was."""
        for generator, saved in zip(self._generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
        self._places = np.array(state["places"])
        self._elapsed = np.array(state["elapsed"])

    def _begin(self, index: int) -> None:
        self._places[index] = self._starts[self._generators[index].integers(len(self._starts))]
        self._elapsed[index] = 0

    def _observation(self) -> npt.NDArray[Any]:
        observation = np.zeros((self.spec.num_envs, self._cells.size), dtype=np.float32)
        cells = self._places[:, 0] * self._cells.shape[1] + self._places[:, 1]
        observation[np.arange(self.spec.num_envs), cells] = 1.0
        return observation
