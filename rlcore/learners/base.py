"""The frame of an update: the points around it, the count; what it does is a learner's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlcore.errors import EndOfEpoch
from rlcore.types import Alone, Group, Key, Learner
from rlcore.types.progress import Progress
from rlcore.types.trainer import InnerPoints

if TYPE_CHECKING:
    from torch import Tensor


class Updating(Learner):
    """A learner that takes its steps in this process.

    Attributes:
        progress: the clocks of the run.
        group: the processes that train together.
        rows: samples of this process in the update, where several train together; 0 joins the others with nothing.
    """

    def __init__(self, hooks: InnerPoints, progress: Progress, group: Group | None = None) -> None:
        self.progress = progress
        self.group: Group = group or Alone()
        self.rows = 0
        self._hooks = hooks

    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step and return its metrics with what `post_optim_log` adds.

        Raises:
            EndOfEpoch: a hook says that there is nothing more to sample.
        """
        hooks = self._hooks
        minibatch = hooks.process_optim_batch(minibatch, self)
        if minibatch is None:
            raise EndOfEpoch
        metrics = self.take_step(minibatch)
        self.progress.updates += 1
        hooks.post_optim(minibatch, self)
        return hooks.post_optim_log(metrics, minibatch, self)

    @abstractmethod
    def take_step(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Change the parameters once, and return metrics, 0-d tensors on the device."""
