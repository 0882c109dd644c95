"""Which worker begins a batch, and whose batch is taken, so that none is further behind the learner than it may be."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

# batches of one worker at a time: one that it collects, and one that waits for the learner
AT_A_TIME: Final = 2


class Turns:
    """Keeps the lag of every batch below a limit by letting workers, or the learner, wait; no batch is thrown away.

    A batch is `version - begun` updates behind when it is taken, and every batch that is taken may be followed by an
    update. So a batch is asked for only while at most `max_lag` others are under way; and one is taken only if each of
    those that stay could still come within its limit, the oldest first.

    Args:
        num_workers: how many there are.
        max_lag: updates of the weights that a batch may be behind, at least 1.
    """

    def __init__(self, num_workers: int, max_lag: int) -> None:
        self._max_lag = max_lag
        self._begun: list[deque[int]] = [deque() for _ in range(num_workers)]  # versions of the batches under way
        self._order = deque(range(num_workers))  # of those with as many batches, who waited longest begins first

    @property
    def under_way(self) -> list[int]:
        """Return, by worker, how many batches are asked for and not taken."""
        return [len(begun) for begun in self._begun]

    def begin(self, version: int) -> int | None:
        """Return the worker that begins a batch with weights of this version; None where no more may be under way."""
        worker = min(self._order, key=lambda index: len(self._begun[index]))
        if sum(self.under_way) > self._max_lag or len(self._begun[worker]) == AT_A_TIME:
            return None
        self._begun[worker].append(version)
        self._order.remove(worker)
        self._order.append(worker)
        return worker

    def may_take(self, worker: int, version: int) -> bool:
        """Return whether the next batch of a worker may be taken by a learner whose weights are of this version."""
        rest = [begun for index, of_worker in enumerate(self._begun) for begun in list(of_worker)[index == worker :]]
        return all(version + place - begun <= self._max_lag for place, begun in enumerate(sorted(rest), start=1))

    def take(self, done: Sequence[int], version: int) -> int | None:
        """Take one of the batches that are done, the first that may be; return its place among them, or None.

        Args:
            done: the workers whose batches they are, in the order in which they came.
            version: of the learner's weights.
        """
        for place, worker in enumerate(done):
            if self.may_take(worker, version):
                self._begun[worker].popleft()
                return place
        return None

    def forget(self) -> None:
        """Forget the batches that are under way."""
        for begun in self._begun:
            begun.clear()
