"""Sums over the steps of an episode, from batch to batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.envs import PassThrough
from rlcore_plugin_transforms.rows import column, rows, valid_steps

if TYPE_CHECKING:
    from typing import Self

    from tensordict import TensorDict

    from rlcore.types import Array


class EpisodeTotals(PassThrough):
    """Base of transforms that write the sum of a value over the running episode into batches.

    What is written under `key` is the sum before the step, 0 where an episode begins; under `("next", key)` the sum
    with it. A masked step adds nothing.
    """

    key: str

    def __init__(self) -> None:
        self.writes = (self.key, ("next", self.key))
        self._carried: Array | None = None  # [env], the sums of the running episodes

    def values(self, batch: TensorDict) -> Array:
        """Return what is summed, `[time, env]`."""
        raise NotImplementedError

    def result(self, totals: Array) -> Array:
        """Return sums in the dtype in which they are written."""
        return totals

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch with the sums as new entries."""
        mask = valid_steps(batch)
        values = np.where(mask, self.values(batch), 0)
        ended = rows(batch["next", "done"]) & mask
        if self._carried is None or self._carried.shape != values.shape[1:]:
            self._carried = np.zeros(values.shape[1], dtype=values.dtype)
        after = _totals(values, ended, self._carried)
        before = np.concatenate((self._carried[None], np.where(ended, 0, after)[:-1]))
        self._carried = np.where(ended[-1], 0, after[-1])
        changed = batch.copy()
        changed[self.key] = column(self.result(before), batch)
        changed["next", self.key] = column(self.result(after), batch)
        return changed

    def frozen(self) -> Self:
        """Return a copy that has summed nothing yet, for envs of its own."""
        copied = super().frozen()
        copied._carried = None
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return the sums of the running episodes."""
        return {"carried": self._carried}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the sums of the running episodes."""
        carried = state["carried"]
        self._carried = None if carried is None else np.array(carried)

    def forget_episodes(self) -> None:
        """Start every sum over: the collector begins new episodes."""
        self._carried = None


def _totals(values: Array, ended: Array, carried: Array) -> Array:
    """Return the sums with each step, `[time, env]`; those of the first episodes begin at `carried`, `[env]`."""
    sums = np.cumsum(np.concatenate((carried[None], values)), axis=0)  # row t: before step t, over all episodes
    times = np.arange(1, len(values) + 1)[:, None]
    begun = np.maximum.accumulate(np.where(ended, times, 0), axis=0)  # the row at which the latest episode begins
    begun = np.concatenate((np.zeros_like(begun[:1]), begun[:-1]))
    before_episode = np.where(begun > 0, np.take_along_axis(sums, begun, axis=0), 0)
    return np.asarray(sums[1:] - before_episode)
