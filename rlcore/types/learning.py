"""What estimators, schedulers, optimizers and learners are, and what they may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from rlcore.types.part import Part

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.group import Group
    from rlcore.types.progress import Progress
    from rlcore.types.records import Key


class Estimator(Part, ABC):
    """Writes advantages and value targets into a collected batch.

    Called in the process that trains, once per iteration or once per epoch; not before `warmup_frames` of the buffer.

    Attributes:
        every: `batch` to run once after collection, before the buffer's first epoch; `epoch` to run before each epoch,
            with the weights of that time.
        requires: the parts of the model that it uses, such as `critic`.

    An estimator that writes further entries names them in `writes`.

    Called in `rlcore/training/loop.py`:

        if estimator is not None and estimator.every == "batch":
            estimator(batch)
        ...
        epoch_batch = hooks.pre_epoch(batch, learner)
        if estimator is not None and estimator.every == "epoch":
            estimator(epoch_batch)
    """

    every: Literal["batch", "epoch"]
    requires: tuple[str, ...] = ()

    @abstractmethod
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target` in the batch, new tensors without a graph.

        Each is `[env, time, 1]`, float32. Nothing is carried over the end of an episode: after `terminated` the value
        is zero, after `truncated` that of `("next", "observation")`. Steps whose mask is False count for nothing.

        Args:
            batch: `[env, time]` on the run's device, as the hooks left it; to be read but for the entries that are set.
        """
        ...


class Scheduler(ABC):
    """A value as a function of progress, so that a resumed run needs no state for it.

    Attributes:
        target: a number of the optimizers, such as `lr`; `NAME.lr` for that of one optimizer; `loss.clip_epsilon` for
            one of `schedulable` of the loss, as of a model or a buffer.

    Called in `plugins/rlcore-plugin-gradient/src/rlcore_plugin_gradient/schedules.py`:

        value = self.scheduler.value(self.initial, progress)
        for group in self.optimizer.param_groups:
            group[self.number] = value
    """

    target: str

    @abstractmethod
    def value(self, initial: float, progress: Progress) -> float:
        """Return the value now; called when the learner is restored, and at the end of each iteration.

        Args:
            initial: the value that the config gave.
            progress: the clocks; `progress.fraction` goes from 0 to 1. Not to be changed.

        Returns:
            A finite number, from the arguments alone; past the horizon that of the horizon.
        """
        ...


class PacedOptimizer:
    """What an optimizer may have besides what torch's have.

    Attributes:
        losses: the names of the losses that it minimises; empty for all.
        every: it steps in update number n, counted from 1, where n is a multiple of it.
    """

    losses: tuple[str, ...] = ()
    every: int = 1


class Learner(Part, ABC):
    """Takes the optimisation steps; hooks at inner points get it as `learner`.

    It lives in the process that trains. It calls the inner points of an update, `context.hooks`, and counts each update
    in `context.progress.updates`. `rlcore.learners.base.Updating` does both for a subclass. A learner may also have a
    state (`Stateful`); model and optimizers are saved without it.

    Of several processes that train together (`context.group`), each updates on its own minibatch; all take the same
    step, by the mean gradient over the rows of all, and all skip one whose loss or gradient is not finite on any. A
    minibatch without rows takes the step of the others. `group.sum_` is called as often on each of them.

    Attributes:
        group: those processes; None where it trains alone.
        skipped_updates: how many updates it left out over the whole run, since they were not finite.

    Called in `rlcore/training/loop.py`:

        for _ in range(parts.buffer.num_epochs):
        ...
        learner.end_iteration()
        ...
        values = learner.update(minibatch)

    Called in `rlcore/training/metric_rows.py`:

        metrics.add(self._parts.learner.scheduled(), "train/")
    """

    group: Group | None = None
    skipped_updates: int = 0

    @abstractmethod
    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step; called once per minibatch.

        Args:
            minibatch: entries `[sample, ...]` by key, as the buffer yields them.

        Returns:
            What the loss returned, and more metrics, such as `grad_norm`: detached tensors by name that stay on the
            device. They are kept until metrics are written, so each call returns new ones.

        Raises:
            EndOfEpoch: a hook ended the epoch; nothing was changed.
        """
        ...

    def end_iteration(self) -> None:
        """Move the schedules; called once per iteration, after its epochs.

        The place to read from the device whether the steps were finite: not in each update, which would wait for it.

        Raises:
            NumericalError: a loss or gradient of this iteration was not finite. The parameters are those before it.
        """

    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, such as `lr`, by name; called when metrics are written."""
        return {}

    def follow(self) -> None:
        """Set what it moves by the progress of the run to what it is at the progress of now.

        Called when the learner starts over in a resumed run, and after each batch of the warm-up, which has no updates.
        """
