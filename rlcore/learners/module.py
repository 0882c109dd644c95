"""A loss module with the optimizers that hooks bring, or with a stepper, as a learner."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rlcore.errors import HookError
from rlcore.learners.base import Turn, Updating
from rlcore.learners.joint import rows_of
from rlcore.types import Group
from rlcore.types.loss import Loss
from rlcore.types.mappings import detached, is_mapping
from rlcore.types.part import defines
from rlcore.types.progress import Progress
from rlcore.types.trainer import InnerPoints

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)


class ModuleLearner(Updating):
    """Takes the loss of a module; whoever is registered at `optimizer` takes the steps.

    Args:
        loss_module: from a minibatch to losses, both TensorDicts or mappings.
        hooks: the points.
        progress: the clocks.
        step: replaces loss, backward and step: from a minibatch to metrics.
        rates: returns the learning rates by name, for the log.
        group: the processes that train together; default: this one alone.

    Raises:
        HookError: the loss samples noise, which nobody would save here.
    """

    def __init__(
        self,
        loss_module: Callable[[Any], Any] | None,
        hooks: InnerPoints,
        progress: Progress,
        step: Callable[[Any], Mapping[str, Tensor]] | None,
        rates: Callable[[], Mapping[str, float]],
        group: Group | None = None,
    ) -> None:
        super().__init__(hooks, progress, group)
        if defines(type(loss_module), Loss.sample_noise):
            raise HookError(
                f"the loss {type(loss_module).__name__} has sample_noise, for which the learner of a config has a "
                "generator: train it from a config, or wrap it in a module that samples from a generator of yours"
            )
        self.loss_module = loss_module
        self._step = step
        self._rates = rates
        self._warned = False

    def replace_step(self, step: Callable[[Any], Mapping[str, Tensor]] | None) -> None:
        """Let something else take the place of loss, backward and step; None for nothing."""
        self._step = step

    def take_step(self, minibatch: Any) -> Mapping[str, Tensor]:
        """Take a step, and return what was lost and logged, detached."""
        self.turn = Turn(minibatch, minibatch, rows=rows_of(minibatch) if self.group.size > 1 else None)
        has_rows = self.turn.rows != 0  # a rank without any takes the step of the others
        if self._step is not None:
            return _detached(self._step(minibatch), "the optimization stepper")
        if self.loss_module is None:
            raise HookError("there is no loss_module to train with; hand one to Trainer")
        losses = self.loss_module(minibatch) if has_rows else {}
        if not is_mapping(losses):
            raise HookError(f"the loss module returned {type(losses).__name__}; expected a TensorDict or a mapping")
        if has_rows:
            losses = self._hooks.post_loss(losses, minibatch, self)
        if self._hooks.used("optimizer"):
            losses = self._hooks.optimizer(losses, minibatch, self)
        elif not self._warned:
            self._warned = True
            log.warning("no optimizer is registered, so nothing is learnt: hand one to Trainer, or an OptimizerHook")
        return _detached(losses, "the optimizer hooks")

    def end_iteration(self) -> None:
        """Do nothing: hooks check that steps were finite, and move schedules."""

    def scheduled(self) -> Mapping[str, float]:
        """Return the learning rates."""
        return self._rates()


def _detached(values: Any, source: str) -> dict[str, Tensor]:
    if not is_mapping(values):
        raise HookError(f"{source} returned {type(values).__name__}; expected a TensorDict or a mapping of numbers")
    return detached(values)
