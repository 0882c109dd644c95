"""An optimizer for some or all losses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from rlcore.errors import HookArgumentError, NumericalError
from rlcore.learners.gradient_step import GradientStep
from rlcore.learners.joint import JointGradients
from rlcore.restore.optimizers import check_state
from rlcore.stock.base import TrainerHookBase
from rlcore.types import Learner, Stateful
from rlcore.types.optional import offers
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from rlcore.types.trainer import ScriptTrainer


def chosen_losses(loss_components: Collection[str] | None) -> tuple[str, ...]:
    """Return the names of the losses to minimise; none stands for all whose name begins with `loss`.

    Raises:
        HookError: a bare string, or an empty sequence.
    """
    if isinstance(loss_components, str):
        raise HookArgumentError(
            f"loss_components = {loss_components!r}: expected a sequence of names, such as a list of one"
        )
    if loss_components is not None and not loss_components:
        raise HookArgumentError(
            "loss_components is empty; leave it out to minimise every loss whose name begins with 'loss'"
        )
    return tuple(loss_components or ())


class ClippedStep(GradientStep):
    """A gradient step of a script, with the clipping that each call names.

    Args:
        optimizer: of torch.
        names: the losses that it minimises; empty for all.
        learner: whose `group` sums the gradients, if it has one.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, names: tuple[str, ...], learner: Any = None) -> None:
        super().__init__(optimizer, None, optimizer.param_groups[0]["params"][0].device, names)
        group = with_defaults(learner, Learner).group
        self._learner = learner
        self._joint = JointGradients(group, [self]) if group is not None and group.size > 1 else None

    def __call__(self, losses: Mapping[str, Tensor], clip_grad_norm: bool, clip_norm: float | None) -> Tensor:
        """Do backward, clipping and step; return the norm of the gradients before clipping."""
        self.max_norm, self.max_value = (clip_norm, None) if clip_grad_norm else (None, clip_norm)
        if self._joint is None:
            self.backward(losses, alone=True)
            return self.apply()
        if self.has_rows():
            self.backward(losses, alone=True)
        self._joint.average(self._learner.rows)
        return self.apply()

    def has_rows(self) -> bool:
        """Return whether this process has samples in the update; one without takes the step of the others."""
        return self._joint is None or bool(self._learner.rows)

    def check_finite(self) -> None:
        """Read the flag of non-finite steps.

        Raises:
            NumericalError: a loss or gradient was not finite; no parameter was changed by its step.
        """
        skipped = int(self.skipped)
        if skipped:
            self.skipped.zero_()
            raise NumericalError(
                f"{skipped} steps of {type(self.optimizer).__name__} had a loss or gradient that is not finite; they "
                "changed no parameter, and the iteration is discarded. Lower the learning rate, set clip_norm, or look "
                "for the cause in rewards and observations."
            )


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

    def use(self, optimizer: torch.optim.Optimizer) -> None:
        """Take the steps of another optimizer from here on.

        Raises:
            NumericalError: a step of the one before was not finite, which nobody would find out later.
        """
        self.check_losses()
        self.optimizer = optimizer
        self._step = None

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
