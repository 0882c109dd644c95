"""The learners of several policies as one: each update is that of the policy whose minibatch it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlcore.errors import EndOfEpoch
from rlcore.types import Group, Learner, Progress, with_defaults
from rlcore_plugin_policies.buffer import OwnMinibatch

if TYPE_CHECKING:
    from torch import Tensor, optim


@dataclass(frozen=True)
class OwnLearner:
    """What updates one policy.

    Attributes:
        learner: takes its steps.
        progress: its clocks: those of the run, but for its own updates, which paces and schedules count.
        optimizers: by name.
    """

    learner: Learner
    progress: Progress
    optimizers: Mapping[str, optim.Optimizer]


class JointLearner:
    """Lets the learner of each policy take the steps with its minibatches.

    Hooks at the points of an update get the learner of the policy, and its minibatch. Those around an epoch get this.

    Args:
        learners: by the name of their policy.
        model: of all policies.
        progress: the clocks of the run.
        group: the processes that train together; each has minibatches of the same policies in the same order.

    Attributes:
        model: the same.
        progress: the same; its updates are those of all policies.
        group: the same.
        optimizers: of all policies; the name of the policy is in front of each.
    """

    def __init__(self, learners: Mapping[str, OwnLearner], model: Any, progress: Progress, group: Group) -> None:
        self.model = model
        self.progress = progress
        self.group = group
        self.optimizers = {
            f"{policy}.{name}": optimizer
            for policy, learning in learners.items()
            for name, optimizer in learning.optimizers.items()
        }
        self._learners = learners

    def of(self, name: str) -> Learner:
        """Return the learner of one policy."""
        return self._learners[name].learner

    def update(self, minibatch: Any) -> Mapping[str, Tensor]:
        """Update the policy of a minibatch; what that returns has the name of the policy in front.

        Where a hook ends the epoch, it ends for that policy alone.
        """
        part: OwnMinibatch = minibatch
        learning = self._learners[part.policy]
        self._follow_clocks(learning)
        try:
            values: Mapping[str, Any] = learning.learner.update(part.entries)
        except EndOfEpoch:
            part.ended = True
            return {}
        self.progress.updates += 1
        named = {f"{part.policy}/{name}": value for name, value in values.items() if name != "log_pbar"}
        if "log_pbar" in values:
            named["log_pbar"] = {f"{part.policy}/{name}" for name in values["log_pbar"]}
        return named

    def end_iteration(self) -> None:
        """Let each move its schedules.

        Raises:
            NumericalError: a step of one was not finite.
        """
        for learning in self._learners.values():
            self._follow_clocks(learning)
            learning.learner.end_iteration()

    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, by policy and name."""
        return {
            f"{policy}/{name}": value
            for policy, learning in self._learners.items()
            for name, value in learning.learner.scheduled().items()
        }

    @property
    def skipped_updates(self) -> int:
        """Updates of all that were not finite and changed nothing."""
        skipped: list[int] = [with_defaults(item.learner, Learner).skipped_updates for item in self._learners.values()]
        return sum(skipped)

    def follow(self) -> None:
        """Let each set what is scheduled to what it is now."""
        for learning in self._learners.values():
            self._follow_clocks(learning)
            with_defaults(learning.learner, Learner).follow()

    def close(self) -> None:
        """Close each that has something to close."""
        for learning in self._learners.values():
            with_defaults(learning.learner, Learner).close()

    def _follow_clocks(self, learning: OwnLearner) -> None:
        run, progress = self.progress, learning.progress
        progress.frames, progress.iterations, progress.episodes = run.frames, run.iterations, run.episodes
