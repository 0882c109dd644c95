"""The frame of an update: the points around it, the count; what it does is a learner's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import EndOfEpoch
from rlcore.types import Alone, Group, Key, Learner
from rlcore.types.progress import Progress
from rlcore.types.trainer import InnerPoints

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Due:
    """What is done in an update.

    Attributes:
        numbers: of the optimizers that step, in their order.
        names: the losses that they minimise; None for a loss that cannot be asked for some.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...] | None


NOTHING: Final = Due((), None)


@dataclass(slots=True)
class Turn:
    """What an update works on, in one of its turns.

    Attributes:
        minibatch: as the hooks left it.
        entries: what the loss reads: those of the minibatch, and noise where the loss samples any.
        turns: what is due in the update, one after the other.
        due: the one of them that is taken.
        rows: samples of this process, where several train together; 0 for one that takes the step of the others.
        losses: those that a hook was handed to step by; None where the learner steps.
    """

    minibatch: Any
    entries: Any
    turns: tuple[Due, ...] = ()
    due: Due = NOTHING
    rows: int | None = None
    losses: Mapping[str, Tensor] | None = None


# takes the losses of a turn and steps; returns losses and metrics, detached
Minimise = Callable[[Turn], Mapping[str, "Tensor"]]


class Updating(Learner):
    """A learner that takes its steps in this process.

    Attributes:
        progress: the clocks of the run.
        group: the processes that train together.
        turn: of the latest update; a hook that takes the step itself reads `turn.rows`.
    """

    def __init__(self, hooks: InnerPoints, progress: Progress, group: Group | None = None) -> None:
        self.progress = progress
        self.group: Group = group or Alone()
        self.turn = Turn({}, {})
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
