"""How many updates follow a batch where a ratio decides: as many as keep the samples in proportion to the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlcore_plugin_replay.packing import Batch

if TYPE_CHECKING:
    from rlcore.types import Group

STATE: Final = "paced_steps"


class ReplayRatio:
    """Counts steps, and says how many updates they are good for.

    After any number of steps there were `floor(steps * ratio / samples)` updates, so that what one batch leaves over
    counts in the next, and no rounding adds up.

    Args:
        ratio: samples that are trained on for each step that was collected.
        samples: of one update, in one process.
        group: the processes that train together; their steps count together.

    Attributes:
        steps: that counted so far. Those of the warm-up do not, nor do those before anything could be sampled.
    """

    def __init__(self, ratio: float, samples: int, group: Group) -> None:
        self.steps = 0
        self._ratio = ratio
        self._samples = samples * group.size
        self._group = group
        self._latest = 0

    def collected(self, batch: Batch) -> None:
        """Note the valid steps of a batch, the latest one."""
        self._latest = batch.size.numel() if batch.mask is None else int(batch.mask.sum())

    def updates(self, can_sample: bool) -> int:
        """Return how many updates follow the latest batch; every process of the group calls this once per batch."""
        steps = self._latest
        if self._group.size > 1:
            there, able = zip(*self._group.share((steps, int(can_sample))), strict=True)
            steps, can_sample = sum(there), any(able)
        if not can_sample:
            return 0
        updates_so_far = self._updates_of(self.steps)
        self.steps += steps
        return self._updates_of(self.steps) - updates_so_far

    def most_updates(self, batch_steps: int) -> int:
        """Return how many updates follow a batch of so many steps at most."""
        return self._updates_of(batch_steps * self._group.size) + 1

    def _updates_of(self, steps: int) -> int:
        return int(steps * self._ratio / self._samples)  # in this order, which is exact where whole numbers come out
