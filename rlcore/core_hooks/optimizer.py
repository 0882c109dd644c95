"""An optimizer for some or all losses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from rlcore.core_hooks.base import TrainerHookBase
from rlcore.learners.clipped_step import ClippedStep, chosen_losses
from rlcore.state.fitting import check_state
from rlcore.types import Stateful
from rlcore.types.optional import offers

if TYPE_CHECKING:
    from rlcore.types.trainer import ScriptTrainer


class OptimizerHook(TrainerHookBase):
    """Minimises losses with an optimizer. Several of them are several optimizers, one step after the other.

    Gradients that are in the parameters before its backward count, as those of a hook's own backward.

    Args:
        optimizer: of torch.
        loss_components: names of the losses to minimise; default: all whose name begins with `loss`.

    Raises:
        HookError: `loss_components` is a bare string, or empty.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"optimizer": "__call__"})
    default_name: ClassVar[str] = "optimizer"

    def __init__(self, optimizer: torch.optim.Optimizer, loss_components: Collection[str] | None = None) -> None:
        self.optimizer = optimizer
        self.loss_components = chosen_losses(loss_components)
        self._learner: Any = None
        self._step: ClippedStep | None = None  # not before the first, so that a script can move the model until then

    def attach(self, trainer: ScriptTrainer) -> None:
        """Train with the processes that the trainer's learner trains with."""
        self._learner = trainer.learner

    def __call__(self, losses: Any, clip_grad_norm: bool, clip_norm: float | None, index: int) -> dict[str, Tensor]:
        """Take a step, and return the losses with `grad_norm_<index>`, the norm of the gradients before clipping."""
        if self._step is None:
            self._step = ClippedStep(self.optimizer, self.loss_components, self._learner)
        norm = self._step(losses, clip_grad_norm, clip_norm)
        return {**dict(losses.items()), f"grad_norm_{index}": norm}

    def check_losses(self) -> None:
        """Read the flag of non-finite steps, once per iteration; see `ClippedStep.check_finite`."""
        if self._step is not None:
            self._step.check_finite()

    def inexact(self) -> str | None:
        """Return why a resume would not go on as this run, or None."""
        if any(parameter.grad is not None for group in self.optimizer.param_groups for parameter in group["params"]):
            return "gradients were left for the next step, which are not saved"
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimizer; an object that only steps may have none."""
        optimizer: Any = self.optimizer
        return optimizer.state_dict() if offers(self.optimizer, Stateful) else {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the state of the optimizer, its learning rate and other numbers too.

        Raises:
            StorageError: the state is of other parameters.
        """
        check_state(self.optimizer, state_dict)
        if state_dict or offers(self.optimizer, Stateful):
            self.optimizer.load_state_dict(dict(state_dict))
