"""The points of a run with several policies: what belongs to one policy is called for its updates alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rlcore.hooks.points import Hook, LoopHooks


class JointHooks(LoopHooks):
    """The points around the loop, which all hooks are called at, and for each policy those of its updates.

    Args:
        hooks: of the run, which all policies share, and those of all policies, in the order of calls.
        own: those that the loss of a policy brings, by policy.
    """

    def __init__(self, hooks: Iterable[Hook], hooks_of: Mapping[str, Iterable[Hook]]) -> None:
        self._ids = {name: {id(hook) for hook in of_policy} for name, of_policy in hooks_of.items()}
        self._of = {name: LoopHooks() for name in hooks_of}
        super().__init__(hooks)

    def of(self, name: str) -> LoopHooks:
        """Return the points that the learner of a policy calls."""
        return self._of[name]

    def follow_changes(self) -> None:
        """Let what was added and removed take effect, for every policy too."""
        changed = self._next is not None
        super().follow_changes()
        for name, points in self._of.items() if changed else ():
            others = set().union(*(ids for policy, ids in self._ids.items() if policy != name))
            points.replace(points.hooks, [hook for hook in self.hooks if id(hook) not in others])
            points.follow_changes()

    def end_epochs_together(self, vote: Callable[[bool], bool]) -> None:
        """End an epoch of a policy where a hook ends it in any of the processes that train together."""
        for points in self._of.values():
            points.end_epochs_together(vote)
