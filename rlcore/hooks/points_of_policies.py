"""The points of a run with several policies: what belongs to one policy is called for its updates alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rlcore.hooks.points import Hook, LoopHooks


class JointHooks(LoopHooks):
    """The points around the loop, which all hooks are called at, and for each policy those of its updates.

    Args:
        hooks: of the run, which all policies share, and those of all policies, in the order of calls.
        own: the instances that the loss and the buffer of each policy bring.
    """

    def __init__(self, hooks: Iterable[Hook], own: Sequence[Iterable[object]]) -> None:
        self._own = [{id(instance) for instance in instances} for instances in own]
        self._of = [LoopHooks() for _ in own]
        super().__init__(hooks)

    def of(self, number: int) -> LoopHooks:
        """Return the points that the learner of a policy calls, by the number of the policy."""
        return self._of[number]

    def follow_changes(self) -> None:
        """Let what was added and removed take effect, for every policy too."""
        changed = self._next is not None
        super().follow_changes()
        for number, points in enumerate(self._of) if changed else ():
            others = set().union(*(own for policy, own in enumerate(self._own) if policy != number))
            points.replace(points.hooks, [hook for hook in self.hooks if id(hook.instance) not in others])
            points.follow_changes()

    def end_epochs_together(self, vote: Callable[[bool], bool]) -> None:
        """End an epoch of a policy where a hook ends it in any of the processes that train together."""
        for points in self._of:
            points.end_epochs_together(vote)
