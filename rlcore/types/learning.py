"""The interfaces of learning: estimators, losses, schedules and the learner that takes the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.progress import Progress
    from rlcore.types.records import Key


class Estimator(Protocol):
    """Writes advantages and value targets into a collected batch.

    Attributes:
        every: `batch` to run once after collection, `epoch` to run again before each epoch.

    A class attribute `requires` names the parts of the model that it uses, as for a loss; none by default. One that
    writes further entries names them in `writes`.
    """

    every: Literal["batch", "epoch"]

    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`, in place."""
        ...


class Loss(Protocol):
    """A `torch.nn.Module` from a minibatch to named scalars.

    A loss with target networks also has an attribute `target_updater`, a `rlcore.learners.targets.TargetUpdater`: the
    learner calls its `step()` after each optimisation step, and saves its state.

    Attributes:
        requires: the parts of the model that it uses.

    A class or instance attribute `reads`, a tuple of keys, names the entries without which it cannot be computed, such
    as `("observation", "advantage", ("next", "reward"))`. A run in which nothing writes them is then refused before its
    first frame. Policies, transforms, collectors, buffers and hooks say what they add to a batch by `writes`; one that
    does not say may add anything.
    """

    requires: tuple[str, ...]

    def __call__(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return 0-d tensors. Those named `loss_*` are summed and minimised; the others are metrics, detached.

        One other shape is known: `td_error` `[sample, 1]`, which a prioritized buffer reads in its `feedback`.
        """
        ...


class Scheduler(Protocol):
    """A value as a function of progress, so that a resumed run needs no state for it."""

    target: str

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value now, from the value that the config gave."""
        ...


class Learner(Protocol):
    """Owns one optimisation step."""

    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step and return what the loss returned, and more metrics, on the device."""
        ...

    def end_iteration(self) -> None:
        """Move the schedules.

        Raises:
            NumericalError: a loss or gradient of this iteration was not finite.
        """
        ...

    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, for logging."""
        ...
