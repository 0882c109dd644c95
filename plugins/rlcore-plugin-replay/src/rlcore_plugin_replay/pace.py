"""The replay ratio: the number of updates after a batch that keeps samples in proportion to collected steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlcore_plugin_replay.packing import Batch

if TYPE_CHECKING:
    from rlcore.types import Group

STATE: Final = "paced_steps"


class ReplayRatio:
    """Counts collected steps, and computes the number of updates from them.

    After any number of steps there were `floor(steps * ratio / samples)` updates, so that no rounding error grows from
    batch to batch.

    Args:
        ratio: samples that are trained on for each collected step.
        samples: of one update, in one process.
        group: the processes that train together; their steps are summed.

    Attributes:
        steps: number of counted steps; steps of the warm-up and of an empty buffer do not count.
    """

    def __init__(self, ratio: float, samples: int, group: Group) -> None:
        self.steps = 0
        self._ratio = ratio
        self._samples = samples * group.size
        self._group = group
        self._latest = 0

    def collected(self, batch: Batch) -> None:
        """Note the number of valid steps of the latest batch."""
        self._latest = batch.size.numel() if batch.mask is None else int(batch.mask.sum())

    def updates(self, can_sample: bool) -> int:
        """Return the number of updates after the latest batch; every process calls this once per batch."""
        steps = self._latest
        if self._group.size > 1:
            counts, able = zip(*self._group.share((steps, int(can_sample))), strict=True)
            steps, can_sample = sum(counts), any(able)
        if not can_sample:
            return 0
        updates_so_far = self._updates_of(self.steps)
        self.steps += steps
        return self._updates_of(self.steps) - updates_so_far

    def most_updates(self, batch_steps: int) -> int:
        """Return the largest number of updates after a batch of so many steps."""
        return self._updates_of(batch_steps * self._group.size) + 1

    def _updates_of(self, steps: int) -> int:
        # multiplied first, which is exact where the result is a whole number
        return int(steps * self._ratio / self._samples)
