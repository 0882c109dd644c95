"""A gradient step of a script on losses that it names, with the clipping of each call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import HookArgumentError, NumericalError
from rlcore.learners.gradient_step import GradientStep
from rlcore.learners.joint import JointGradients
from rlcore.types.learning import Learner
from rlcore.types.part import with_defaults


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
        if self.has_rows():
            self.backward(losses, alone=True)
        if self._joint is not None:
            self._joint.average(self._learner.turn.rows)
        return self.apply()

    def has_rows(self) -> bool:
        """Return whether this process has samples in the update; one without takes the step of the others."""
        return self._joint is None or self._learner.turn.rows > 0

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
