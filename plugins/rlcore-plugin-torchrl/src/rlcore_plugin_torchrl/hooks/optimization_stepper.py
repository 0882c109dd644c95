"""Objects that own an optimisation step: loss, backward and the steps of their optimizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rlcore.errors import HookError
from rlcore.learners import ClippedStep, chosen_losses
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import ScriptTrainer


class OptimizationStepper(StockHook, ABC):
    """Takes the place of loss, backward and step: for several optimizers, delayed updates or several backward passes.

    Hand one to `Trainer(optimization_stepper=...)`. The points `post_optim` and `post_optim_log` follow each step;
    those between loss and step are not called.
    """

    default_name: ClassVar[str] = "optimization_stepper"

    @abstractmethod
    def step(self, trainer: ScriptTrainer, sub_batch: Any) -> Mapping[str, Tensor]:
        """Take one optimisation step on a sub-batch, and return numbers to log."""

    def register(self, trainer: ScriptTrainer, name: str | None = None) -> None:
        """Register it for checkpoints, and its methods at its destinations, if it names any."""
        if self.destinations:
            super().register(trainer, name)
            return
        trainer.register_module(name or self.default_name, self)
        self.attach(trainer)


class DefaultOptimizationStepper(OptimizationStepper):
    """Minimises losses of `trainer.loss_module` with `trainer.optimizer`, with the trainer's clipping.

    Args:
        loss_components: names of the losses to minimise; default: all whose name begins with `loss`.

    Raises:
        HookError: `loss_components` is a bare string, or empty.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"post_steps": "check_finite"})

    def __init__(self, loss_components: Collection[str] | None = None) -> None:
        self.loss_components = chosen_losses(loss_components)
        self._step: ClippedStep | None = None

    def step(self, trainer: ScriptTrainer, sub_batch: Any) -> dict[str, Tensor]:
        """Take a step, and return the losses with `grad_norm`, the norm of the gradients before clipping.

        Raises:
            HookError: the trainer has no optimizer.
        """
        if trainer.optimizer is None:
            raise HookError("DefaultOptimizationStepper: the trainer has no optimizer; hand one to Trainer")
        if self._step is None or self._step.optimizer is not trainer.optimizer:
            self.check_finite()  # of the optimizer before, whose flag goes with it
            self._step = ClippedStep(trainer.optimizer, self.loss_components, trainer.learner)
        losses = trainer.compute_loss(sub_batch) if self._step.has_rows() else {}
        norm = self._step(losses, trainer.clip_grad_norm, trainer.clip_norm)
        return {**dict(losses.items()), "grad_norm": norm}

    def check_finite(self) -> None:
        """Read the flag of non-finite steps, once per iteration; see `ClippedStep.check_finite`."""
        if self._step is not None:
            self._step.check_finite()
