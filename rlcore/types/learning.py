"""The interfaces of learning: estimators, losses, schedules and the learner that takes the step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.progress import Progress
    from rlcore.types.records import Key


class Estimator(Protocol):
    """Writes advantages and value targets into a collected batch.

    Called in the process that trains, once per iteration or once per epoch; not before `warmup_frames` of the buffer.

    Attributes:
        every: `batch` to run once after collection, before the buffer's first epoch; `epoch` to run before each epoch,
            with the weights of that time.

    A class attribute `requires` names the parts of the model that it uses, as for a loss; none by default. One that
    writes further entries names them in `writes`.

    Called in `rlcore/training/loop.py`:

        if estimator is not None and estimator.every == "batch":
            estimator(batch)
        ...
        epoch_batch = hooks.pre_epoch(batch, learner)
        if estimator is not None and estimator.every == "epoch":
            estimator(epoch_batch)
    """

    every: Literal["batch", "epoch"]

    @abstractmethod
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target` in the batch, new tensors without a graph.

        Each is `[env, time, 1]`, float32. Nothing is carried over the end of an episode: after `terminated` the value
        is zero, after `truncated` that of `("next", "observation")`. Steps whose mask is False count for nothing.

        Args:
            batch: `[env, time]` on the run's device, as the hooks left it; to be read but for the entries that are set.
        """
        ...


class Loss(Protocol):
    """A `torch.nn.Module` from a minibatch to named scalars.

    Its parameters are those of the model. Called once per update, in the process that trains, with gradients on. With a
    compiled update it is traced, once per size of a minibatch and what is asked for: it then reads the same keys and
    returns the same names every time, and does nothing that depends on the values of tensors.

    A loss with target networks also has an attribute `target_updater`, a `rlcore.learners.targets.TargetUpdater`: the
    learner calls its `step()` after each optimisation step, and saves its state.

    Attributes:
        requires: the parts of the model that it uses.

    A loss that computes its losses one by one names them in `loss_names`, all `loss_*` that it returns, and takes as a
    second argument which of them to compute: `loss(minibatch, names)`, None for all. The learner asks for those whose
    optimizers step in the update (`[[optimizer]] every`); the others cost nothing. It returns these and the metrics
    that come with them, so that the keys depend on `names` alone. Whatever the optimizers are, the loss of an actor
    gives no gradient to the critics, and the other way round. A loss without `loss_names` computes all, every time.

    A loss in which something is random, such as the actions of SAC, says what by a method `sample_noise`, as below. The
    learner calls it once per update, with a generator that it saves, and adds what it returns to the minibatch, for
    the loss alone. The loss reads it as `minibatch["noise"]`, and samples nothing itself: so a compiled update, a
    resume and every process of several sample as they should. The `Trainer` of a script refuses such a loss.

        def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
            return {"noise": torch.randn(samples, 2, generator=generator, device=generator.device)}

    The entries are on the generator's device, have names that the minibatch has not, and any shape.

    A class or instance attribute `reads`, a tuple of keys, names the entries without which it cannot be computed, such
    as `("observation", "advantage", ("next", "reward"))`. A run in which nothing writes them is then refused before its
    first frame. Policies, transforms, collectors, buffers and hooks say what they add to a batch by `writes`; one that
    does not say may add anything.

    Called in `rlcore/learners/gradient.py`:

        losses = self._loss(entries) if due.names is None else self._loss(entries, due.names)
        losses = hooks.post_loss(losses, minibatch, self)
    """

    requires: tuple[str, ...]

    def __call__(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the losses of a minibatch, and metrics.

        Args:
            minibatch: entries `[sample, ...]` by key, on the run's device. An entry is gathered when it is read; a key
                that nothing writes is an `UnwrittenEntryError`. Not to be changed.

        Returns:
            New 0-d tensors by name, the same names every time. Those named `loss_*` are summed and minimised; the
            others are metrics, detached. One other shape is known: `td_error` `[sample, 1]`, which a prioritized buffer
            reads in its `feedback`. A value that is not finite skips the update and ends the run.
        """
        ...


class Scheduler(Protocol):
    """A value as a function of progress, so that a resumed run needs no state for it.

    Attributes:
        target: a number of the optimizers, such as `lr`; `NAME.lr` for that of one optimizer; `loss.clip_epsilon` for
            one that the loss declares (`Schedulable`), as a model and a buffer may.

    Called in `rlcore/learners/schedules.py`:

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


class Learner(Protocol):
    """Takes the optimisation steps; hooks at inner points get it as `learner`.

    It lives in the process that trains. It calls the inner points of an update, `context.hooks`, and counts each update
    in `context.progress.updates`. `rlcore.learners.base.Updating` does both for a subclass. A learner may also have a
    state (`Stateful`); model and optimizers are saved without it.

    Of several processes that train together (`context.group`), each updates on its own minibatch; all take the same
    step, by the mean gradient over the rows of all, and all skip one whose loss or gradient is not finite on any. A
    minibatch without rows takes the step of the others. `group.sum_` is called as often on each of them.

    Called in `rlcore/training/loop.py`:

        for _ in range(parts.buffer.num_epochs):
        ...
        learner.end_iteration()
        ...
        values = learner.update(minibatch)

    Called in `rlcore/training/metric_rows.py`:

        metrics.add(self._parts.learner.scheduled(), "train/")
    """

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
        ...

    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, such as `lr`, by name; called when metrics are written."""
        return {}
