"""What the processes that train together agree on, so that all of them do the same iterations and the same epochs.

Each collects with envs of its own. Whatever would let one of them stop, count or end an epoch alone is shared here:
once per iteration, and once per minibatch where a hook may end the epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from rlcore.types.group import Group


class Collected(NamedTuple):
    """What one process has to say after it collected; or what all of them agreed on.

    Attributes:
        steps: valid steps of the batch; agreed: of all batches.
        episodes: that ended in it; agreed: in all of them.
        out_of_data: 1 where there is no batch and none will come; agreed: 1 where one has none.
        stop: 1 where a stop was asked for; agreed: 1 where one was asked, or is out of data.
        stop_at: where to stop, on the clock of the run; agreed: the least.
        keep: 1 where the time has come to keep a copy of the state; agreed: what rank 0 says, since clocks differ.
    """

    steps: int
    episodes: int
    out_of_data: int
    stop: int
    stop_at: int
    keep: int


class Lockstep:
    """Keeps the loop of this process in step with those of its group; one process alone follows itself.

    Args:
        group: the processes that train together.

    Attributes:
        together: whether there are others.
    """

    def __init__(self, group: Group) -> None:
        self.together = group.size > 1
        self._group = group
        self._agreed: Collected | None = None

    def agree(self, collected: Collected) -> Collected:
        """Return what all say together; every process calls this once per iteration, after it collected."""
        if not self.together:  # at no cost, as some runs have an iteration per step
            return collected
        steps, episodes, out_of_data, stop, stop_at, keep = zip(*self._group.share(collected), strict=True)
        ended = max(out_of_data)
        self._agreed = Collected(sum(steps), sum(episodes), ended, max(ended, *stop), min(stop_at), keep[0])
        return self._agreed

    def ends(self, now: int, stop: bool, stop_at: int) -> bool:
        """Return whether the loop ends here, before an iteration.

        Alone, what this process says counts at once. Together, what was agreed last counts: a request to stop takes
        effect after the iteration in which all heard of it, so that none waits for one that left.

        Args:
            now: how far the run is, on its clock.
            stop: whether this process was asked to stop.
            stop_at: where this process would stop.
        """
        if self.together:
            stop = self._agreed is not None and bool(self._agreed.stop)
            stop_at = stop_at if self._agreed is None else self._agreed.stop_at
        return stop or now >= stop_at

    def keeps(self, due: bool) -> bool:
        """Return whether to keep a copy of the state here: alone if it is `due`, together where all do."""
        if self.together:
            return self._agreed is None or bool(self._agreed.keep)
        return due

    def first_says(self, flag: bool, now: int) -> bool:
        """Return a decision of the first process, which each asks for at the same place; alone, one's own."""
        return bool(self._group.share((int(flag), now))[0][0]) if self.together else flag

    def vote(self, ended: bool) -> bool:
        """Return whether the epoch ends on any process; every process calls this with whether it ends on its own."""
        return any(ends for (ends,) in self._group.share((int(ended),)))
