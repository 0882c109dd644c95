"""The episodes of transitions in a ring, for goals that an episode reached later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


class GoalEpisodes:
    """Keeps the order of the rows of each env in a ring, and the ends of its episodes.

    Rows are numbered in the order of their writes. A later row of an episode is newer, so it is overwritten later.

    Args:
        capacity: rows of the ring.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._env = np.zeros(capacity, np.int64)  # of the row at a place
        self._count = np.zeros(capacity, np.int64)  # of the row at a place, among those of its env
        self._begin(0)

    def add(self, done: BoolArray, valid: BoolArray, written: int) -> None:
        """Add rows that were written.

        Args:
            done: `[env, time]`, whether a step ends an episode.
            valid: `[env, time]`, whether a step was written; by time first.
            written: number of rows written before.
        """
        if len(self._counts) != done.shape[0]:
            self._begin(done.shape[0])
        capacity = self._capacity
        for time, env in zip(*np.nonzero(valid.T), strict=True):
            count = self._counts[env]
            place, slot = written % capacity, count % capacity
            self._env[place], self._count[place] = env, count
            self._row[env, slot], self._last[env, slot] = written, -1
            self._counts[env] = count + 1
            written += 1
            if done[env, time]:
                self._end(env)

    def end_all(self) -> None:
        """End the running episodes where they are."""
        for env in range(len(self._counts)):
            self._end(env)

    def later(self, places: Array, uniform: Array | None) -> Array:
        """Return the places of the same or later rows in the episodes of rows.

        Args:
            places: int64 `[row]`.
            uniform: `[row]` in [0, 1), which chooses among them; None for the last rows.
        """
        env, count = self._env[places], self._count[places]
        last = self._last_of(env, count)
        chosen = last if uniform is None else count + (uniform * (last - count + 1)).astype(np.int64)
        rows: Array = self._row[env, chosen % self._capacity] % self._capacity
        return rows

    def following(self, places: Array, steps: int) -> tuple[Array, Array]:
        """Return the places of rows and of the rows after them in their episodes, with their number.

        Args:
            places: int64 `[row]`.
            steps: number of rows to return, at least 1; the first are the rows themselves.

        Returns:
            Places int64 `[step, row]`, with the last row of an episode repeated; and their numbers `[row]`.
        """
        env, count = self._env[places], self._count[places]
        last = self._last_of(env, count)
        ahead = np.minimum(count + np.arange(steps)[:, np.newaxis], last)
        rows: Array = self._row[env, ahead % self._capacity] % self._capacity
        return rows, np.minimum(last - count + 1, steps)

    def state_dict(self) -> dict[str, Any]:
        """Return the envs, orders and ends of the filled rows."""
        used = min(self._capacity, int(self._counts.max(initial=0)))
        filled = min(self._capacity, int(self._counts.sum()))
        return {
            "env": self._env[:filled].copy(),
            "count": self._count[:filled].copy(),
            "row": self._row[:, :used].copy(),
            "last": self._last[:, :used].copy(),
            "counts": self._counts.copy(),
            "begins": self._begins.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        saved = {name: np.asarray(value) for name, value in state.items()}
        self._begin(len(saved["counts"]))
        for name in ("env", "count"):
            getattr(self, f"_{name}")[: len(saved[name])] = saved[name]
        for name in ("row", "last"):
            getattr(self, f"_{name}")[:, : saved[name].shape[1]] = saved[name]
        self._counts[:], self._begins[:] = saved["counts"], saved["begins"]

    def _last_of(self, env: Array, count: Array) -> Array:
        """Return the last step so far of the episodes of steps `[row]`, counted in their envs."""
        last = self._last[env, count % self._capacity]
        return np.where(last < 0, self._counts[env] - 1, last)

    def _begin(self, num_envs: int) -> None:
        self._row = np.zeros((num_envs, self._capacity), np.int64)  # of the n-th row of an env, by n modulo capacity
        self._last = np.full((num_envs, self._capacity), -1, np.int64)  # of its episode; -1 while that goes on
        self._counts = np.zeros(num_envs, np.int64)
        self._begins = np.zeros(num_envs, np.int64)

    def _end(self, env: int) -> None:
        count, capacity = int(self._counts[env]), self._capacity
        steps = np.arange(max(int(self._begins[env]), count - capacity), count)
        self._last[env, steps % capacity] = count - 1
        self._begins[env] = count
