"""The tree of sums of `sum_tree.py` in host memory, in NumPy, as small operations of torch cost more there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from rlcore_plugin_replay.sum_tree import BITS, FANOUT, JUST_BELOW_ONE

if TYPE_CHECKING:
    from rlcore.types import Array

_TOP: Final = 1024  # largest size of the highest level


class HostSumTree:
    """Tree of numbers that are not negative, with the sums of every 32 numbers, of every 32 sums, and so on; float64.

    The highest level has at most 1024 sums. One search in their running sum replaces two levels more; below it, a
    million numbers take two levels.

    Args:
        size: number of numbers; all begin as 0.
    """

    def __init__(self, size: int) -> None:
        groups = max(1, -(-size // FANOUT))
        self._levels: list[Array] = [np.zeros((groups, FANOUT))]
        while self._levels[-1].size > _TOP:
            groups = -(-groups // FANOUT)
            self._levels.append(np.zeros((groups, FANOUT)))
        self._flat = [level.reshape(-1) for level in self._levels]
        self._edges = np.zeros(self._levels[-1].size + 1)
        self._stale = False  # whether the edges are not those of the highest level

    def __getitem__(self, index: Array) -> Array:
        """Return the numbers at places `[sample]`."""
        values: Array = self._flat[0].take(index)
        return values

    def __setitem__(self, index: Array, values: Array) -> None:
        """Set the numbers at places `[sample]`; a place that occurs twice gets the last of its values."""
        self._flat[0][index] = values
        self._stale = True
        for lower, upper in zip(self._levels, self._flat[1:], strict=False):
            index = index >> BITS
            # sums of all numbers: added differences would let rounding errors grow; torch takes half of NumPy's time
            upper[index] = torch.from_numpy(lower.take(index, 0)).sum(1).numpy()

    def fill(self, begin: int, end: int, value: float) -> None:
        """Set the numbers at places from `begin` up to `end`."""
        self._flat[0][begin:end] = value
        self._stale = True
        for lower, upper in zip(self._levels, self._flat[1:], strict=False):
            begin, end = begin >> BITS, ((end - 1) >> BITS) + 1
            np.add.reduce(lower[begin:end], 1, out=upper[begin:end])

    def draw(self, uniform: Array) -> Array:
        """Return places, int64 `[sample]`, in proportion to their numbers; never a place with the number 0.

        Args:
            uniform: float64 `[sample]` in [0, 1).
        """
        edges = self._edges
        if self._stale:
            np.cumsum(self._flat[-1], out=edges[1:])
            self._stale = False
        rest = np.minimum(uniform * edges[-1], edges[-1] * JUST_BELOW_ONE)
        place: Array = edges[1:].searchsorted(rest, side="right")
        rest = rest - edges[place]
        rows = np.arange(0, len(uniform) * FANOUT, FANOUT)
        for number in reversed(range(len(self._levels) - 1)):
            # torch adds along rows in a sixth of NumPy's time
            running = torch.from_numpy(self._levels[number].take(place, 0)).cumsum(1).numpy()
            # the level above was rounded differently: at the edge, the rest must still fall inside this row
            rest = np.minimum(rest, running[:, -1] * JUST_BELOW_ONE)
            child = (running > rest[:, np.newaxis]).argmax(1)
            place = (place << BITS) + child
            if number:
                rest -= np.where(child, running.reshape(-1).take(rows + child - 1), 0.0)
        return place

    def state_dict(self) -> dict[str, Any]:
        """Return all levels, with the small ones that a `SumTree` has and this tree has not."""
        levels = list(self._levels)
        while len(levels[-1]) > 1:
            sums = np.zeros((-(-len(levels[-1]) // FANOUT), FANOUT))
            sums.reshape(-1)[: len(levels[-1])] = levels[-1].sum(1)
            levels.append(sums)
        return {"levels": [torch.from_numpy(level) for level in levels]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set all levels."""
        for level, saved in zip(self._levels, state["levels"], strict=False):
            level[:] = saved.numpy(force=True)
        self._stale = True
