"""The gradient step of one optimizer: backward, clipping, step, skipping what is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MethodType

import torch
from torch import Tensor

from rlcore.errors import ConfigError, did_you_mean
from rlcore.learners.adam import AdamState, separate_counts
from rlcore.learners.torch_private import foreach_norm
from rlcore.process.first_calls import make_first_calls


class GradientStep:
    """The gradient step of one optimizer. Skips, on the device, a step that is not finite.

    Gradients that are in the parameters already, as a hook's own backward leaves them, are added to; after the step
    there are none.

    Args:
        optimizer: of torch.
        max_norm: clip the norm of all gradients.
        device: of the parameters.
        names: the losses that it minimises; empty for all.
        max_value: clip each element of the gradients instead.
        every: it steps in every so many updates, of which its owner takes care.

    Attributes:
        optimizer: as given.
        parameters: of all groups of the optimizer.
        skipped: how many steps were skipped, a 0-d tensor on the device.
        every: as given.
        not_finite: whether the last step was skipped, a 0-d tensor on the device, 1 or 0.
        names: the losses that it minimises; empty for all.
        max_norm: as given; may change from step to step.
        max_value: as given; may change from step to step.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        max_norm: float | None,
        device: torch.device,
        names: tuple[str, ...] = (),
        max_value: float | None = None,
        every: int = 1,
    ) -> None:
        make_first_calls()  # of a script: nobody prepared its process
        self.optimizer = optimizer
        self.parameters: list[Tensor] = []
        self.names = names
        self.max_norm = max_norm
        self.max_value = max_value
        self.every = every
        self.skipped = torch.zeros((), device=device)
        self._zero, self._one = torch.zeros((), device=device), torch.ones((), device=device)
        self.not_finite = self._zero
        self._groups = 0
        self.follow_groups()
        self._adam: AdamState | None = None
        self._total = torch.zeros((), device=device)
        self._norms = foreach_norm()
        # what torch's own does is done here without calling it, and another may do more
        clears = optimizer.zero_grad
        is_torchs = isinstance(clears, MethodType) and clears.__func__ is torch.optim.Optimizer.zero_grad
        self._clears_itself = not is_torchs
        self._gradients: tuple[Tensor | None, ...] | None = None  # of `backward`, until they are in the parameters

    def follow_groups(self) -> None:
        """Take the parameters of all groups; a script may add a group in the middle of a run."""
        if len(self.optimizer.param_groups) != self._groups:
            self._groups = len(self.optimizer.param_groups)
            self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]

    def backward(self, losses: Mapping[str, Tensor], alone: bool, last: bool = False) -> None:
        """Take the gradients of the losses that this optimizer minimises.

        Args:
            losses: of the loss.
            alone: whether there is no other optimizer.
            last: whether none follows in this update, so that the graph can be freed.
        """
        if len(self.optimizer.param_groups) != self._groups:  # asked here, as a call for each minibatch costs time
            self.follow_groups()
        total = total_loss(losses, self.names)
        self._total = total.detach()
        if not alone:
            self._gradients = torch.autograd.grad(total, self.parameters, retain_graph=not last, allow_unused=True)
            return
        total.backward()  # type: ignore[no-untyped-call]

    def note(self, losses: Mapping[str, Tensor]) -> None:
        """Note that the gradients of the losses, detached here, were added to the parameters elsewhere."""
        self.follow_groups()
        self._total = total_loss(losses, self.names)

    def forget(self) -> None:
        """Drop the gradients of an update that failed."""
        self._gradients = None
        for parameter in self.parameters:
            parameter.grad = None

    def gradients(self) -> tuple[list[Tensor | None], Tensor]:
        """Return the gradient of each parameter, None for one without, and the total loss that they are of."""
        self._put_into_parameters()
        return [parameter.grad for parameter in self.parameters], self._total

    def replace(self, gradients: Sequence[Tensor], total: Tensor) -> None:
        """Let `apply` use other gradients, one for each parameter, and the total loss that they are of."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            # a call of `to` that changes nothing costs four times as much as the comparison
            parameter.grad = gradient if gradient.dtype == parameter.dtype else gradient.to(parameter.dtype)
        self._total = total

    def apply(self) -> Tensor:
        """Take the step, and return the norm of the gradients before clipping.

        Raises:
            ConfigError: no parameter has a gradient.
        """
        if self._gradients is not None:
            self._put_into_parameters()
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        if not gradients:
            raise ConfigError(
                f"the losses depend on none of the {len(self.parameters)} parameters of "
                f"{type(self.optimizer).__name__}, so it has no step to take; build it over those of the loss"
            )
        norm: Tensor = torch.linalg.vector_norm(torch.stack(tuple(self._norms(gradients))))
        if self.max_value is not None:
            torch.nn.utils.clip_grad_value_(self.parameters, self.max_value, foreach=True)
        adam = self._fused_adam() if len(gradients) == len(self.parameters) else None
        if norm.is_cpu:
            self._step_on_host(adam, gradients, norm)
        else:
            self._step_on_device(adam, gradients, norm)
        self._clear_gradients()
        return norm

    def _step_on_host(self, adam: AdamState | None, gradients: list[Tensor], norm: Tensor) -> None:
        """Step in the memory of the host, where to read a number costs less than another operation."""
        finite = math.isfinite((norm + self._total).item())
        self.not_finite = self._zero if finite else self._one
        if not finite:
            self.skipped += 1
        elif adam is not None:
            limit = self.max_norm
            adam.fused_step(gradients, None if limit is None or norm.item() <= limit else norm / limit, None)
        else:
            self._plain_step(norm)

    def _step_on_device(self, adam: AdamState | None, gradients: list[Tensor], norm: Tensor) -> None:
        """Step on a device, without a wait for any number."""
        zero = (norm + self._total) * 0.0  # not a number where either is not finite
        self.not_finite = not_finite = (zero != 0).to(norm.dtype)
        self.skipped += not_finite
        if adam is not None:
            # the kernel divides the gradients and skips: it reads both numbers on the device
            scale = None if self.max_norm is None else (norm / self.max_norm).clamp_(min=1.0)
            adam.fused_step(gradients, scale, not_finite)
        elif not bool(not_finite):
            self._plain_step(norm)

    def waiting_gradients(self) -> bool:
        """Return whether a parameter has a gradient, which a hook left for the next step."""
        return any(parameter.grad is not None for parameter in self.parameters)

    def _put_into_parameters(self) -> None:
        """Add the gradients that `backward` took to those that are in the parameters."""
        if self._gradients is None:
            return
        for parameter, gradient in zip(self.parameters, self._gradients, strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        self._gradients = None

    def _fused_adam(self) -> AdamState | None:
        """Return the state for the fused kernel; None where the optimizer has to step by itself."""
        if self._adam is None or not self._adam.is_current():
            self._adam = AdamState(self.optimizer) if AdamState.fits_kernel(self.optimizer) else None
        return self._adam

    def _plain_step(self, norm: Tensor) -> None:
        self._adam = None
        separate_counts(self.optimizer, self.parameters)
        if self.max_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self.parameters, self.max_norm, norm, foreach=True)
        self.optimizer.step()

    def _clear_gradients(self) -> None:
        if self._clears_itself:
            self.optimizer.zero_grad()
        for parameter in self.parameters:
            parameter.grad = None


def total_loss(losses: Mapping[str, Tensor], names: tuple[str, ...] = ()) -> Tensor:
    """Return the sum of the named losses, or of all that are called `loss_*`.

    Raises:
        ConfigError: a name that the loss does not return, or nothing to minimise.
    """
    for name in names:
        if name not in losses:
            raise ConfigError(f"[optimizer] losses: the loss returns no {name!r}{did_you_mean(name, losses.keys())}")
    minimised = [value for name, value in losses.items() if (name in names if names else name.startswith("loss"))]
    if not minimised:
        raise ConfigError(
            f"the loss returned nothing to minimise: its keys are {', '.join(losses.keys())}, none is loss_*"
        )
    return sum(minimised[1:], minimised[0])
