"""The state of an Adam or AdamW optimizer as flat lists, for steps that do not go through the optimizer's Python code.

`torch.optim.Adam.step` spends more time in Python than its kernel on a small network. The state stays the optimizer's:
saving and loading it works as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.learners.torch_private import WatchedStep, look_up, steps_as_torch_does


class AdamState:
    """Moments and step count of every parameter, made where they are missing.

    Every parameter has taken the same steps, so one tensor counts for all.

    Args:
        optimizer: with one parameter group, see `fits`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        (self.group,) = optimizer.param_groups
        self.parameters: list[Tensor] = list(self.group["params"])
        device = self.parameters[0].device
        for parameter in self.parameters:
            state = optimizer.state[parameter]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32, device=device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        states = [optimizer.state[parameter] for parameter in self.parameters]
        self.step: Tensor = states[0]["step"]
        for state in states:
            state["step"] = self.step
        self._optimizer = optimizer
        self.first: list[Tensor] = [state["exp_avg"] for state in states]
        self.second: list[Tensor] = [state["exp_avg_sq"] for state in states]
        self._check_moments()
        self.values = [parameter.detach() for parameter in self.parameters]
        self.decoupled = isinstance(optimizer, torch.optim.AdamW)
        self._watched = WatchedStep(optimizer)
        # schedulers of torch warn of an optimizer whose `step` was never called, and the kernel goes past it; where
        # torch notes that otherwise, it warns and trains on
        optimizer._opt_called = True  # type: ignore[attr-defined]
        self._kernel = _kernel(self.decoupled)
        # one entry for each parameter, as the kernel takes them, though all are the same tensor
        self._steps = [self.step] * len(self.parameters)

    def _check_moments(self) -> None:
        """Refuse moments that are not of these parameters: the kernel takes addresses, and compares nothing."""
        for parameter, *moments in zip(self.parameters, self.first, self.second, strict=True):
            if any(moment.shape != parameter.shape or moment.dtype != parameter.dtype for moment in moments):
                raise StorageError(
                    f"the state of {type(self._optimizer).__name__} has moments of {list(moments[0].shape)} for a "
                    f"parameter of {list(parameter.shape)}; load the state of an optimizer of this model"
                )

    @staticmethod
    def fits(optimizer: torch.optim.Optimizer) -> bool:
        """Return whether the optimizer is a plain Adam or AdamW with one group, and has taken its steps as a whole.

        One whose `step` was patched, or that has hooks around it, is not: they would not be called.
        """
        if type(optimizer) not in (torch.optim.Adam, torch.optim.AdamW) or len(optimizer.param_groups) != 1:
            return False
        group = optimizer.param_groups[0]
        if any(group[name] for name in ("amsgrad", "maximize", "differentiable", "capturable")):
            return False
        if not steps_as_torch_does(optimizer):
            return False
        counts = [optimizer.state[parameter].get("step") for parameter in group["params"]]
        return len({None if count is None else float(count) for count in counts}) <= 1

    @staticmethod
    def fits_kernel(optimizer: torch.optim.Optimizer) -> bool:
        """Return whether it fits, and torch has the kernel that `fused_step` calls; else its own `step` is for it."""
        if not AdamState.fits(optimizer):
            return False
        decoupled = isinstance(optimizer, torch.optim.AdamW)
        kernel = _kernel(decoupled)
        return kernel is not None and _takes_steps(kernel, decoupled, optimizer.param_groups[0]["params"][0].device)

    def is_current(self) -> bool:
        """Return whether the optimizer still has this state, which loading replaces, and nobody watches its steps."""
        state = self._optimizer.state.get(self.parameters[0])
        return (
            state is not None
            and state["step"] is self.step
            and self._optimizer.param_groups[0] is self.group
            and len(self._optimizer.param_groups) == 1
            and self._watched.is_current()
        )

    def fused_step(self, gradients: list[Tensor], grad_scale: Tensor | None, not_finite: Tensor | None) -> None:
        """Take one step in one kernel.

        Args:
            gradients: one per parameter; they are divided by `grad_scale` in place.
            grad_scale: 0-d, or None.
            not_finite: 0-d; where it is 1 nothing changes. None for a step that is taken in any case.
        """
        group = self.group
        beta1, beta2 = group["betas"]
        self.step.add_(1.0 if not_finite is None else 1.0 - not_finite)
        self._kernel(
            self.values,
            gradients,
            self.first,
            self.second,
            [],
            self._steps,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
            grad_scale=grad_scale,
            found_inf=not_finite,
        )


def _kernel(decoupled: bool) -> Any:
    """Return the kernel of a whole step, which torch keeps to itself; None where there is none."""
    return look_up(torch, "_fused_adamw_" if decoupled else "_fused_adam_")


@lru_cache(maxsize=8)
def _takes_steps(kernel: Callable[..., Any], decoupled: bool, device: torch.device) -> bool:
    """Try a kernel out on one number: another version of torch may pass other arguments, or mean others by them."""
    value, gradient = torch.ones(1, device=device), torch.full((1,), 2.0, device=device)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    state = AdamState(kind([value], lr=0.1, weight_decay=0.0))
    zero, one, scale = (torch.tensor(number, device=device) for number in (0.0, 1.0, 2.0))
    try:
        state.fused_step([gradient], scale, zero)
        state.fused_step([torch.ones_like(gradient)], None, None)
        stepped = [float(tensor) for tensor in (value, state.first[0], state.step)]
        state.fused_step([torch.ones_like(gradient)], None, one)
        skipped = [float(tensor) for tensor in (value, state.first[0], state.step)]
    except Exception:  # of another signature, which may raise anything
        return False
    expected = [0.8, 0.19, 2.0]
    return stepped == skipped and all(abs(a - b) < 1e-5 for a, b in zip(stepped, expected, strict=True))


def separate_counts(optimizer: torch.optim.Optimizer, parameters: list[Tensor]) -> None:
    """Give every parameter a count of its own, as the optimizer's own step needs it; an `AdamState` shares one."""
    counts = [optimizer.state[parameter].get("step") for parameter in parameters[:2] if parameter in optimizer.state]
    if len(counts) < 2 or counts[0] is not counts[1] or not isinstance(counts[0], Tensor):
        return
    for parameter in parameters:
        if parameter in optimizer.state:  # one that was added later has no state yet, and torch makes it whole
            optimizer.state[parameter]["step"] = counts[0].clone()
