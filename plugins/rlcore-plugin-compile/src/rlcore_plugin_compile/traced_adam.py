"""Adam and AdamW as plain operations on tensors, for the compiler to make one graph of with all that is before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from rlcore.learners import AdamState, GradientStep

# numbers of a reduction that the compiler does not write out: it does so up to eight
_REDUCED: Final = 16


class TracedAdam:
    """An Adam or AdamW optimizer whose step is written out; its state stays the optimizer's.

    Args:
        step: the gradient step that it takes the place of.
        name: of the optimizer.

    Attributes:
        names: the losses that it minimises; empty for all.
        name: as given.
        adam: its state, as lists of tensors.
        skipped: how many steps were not finite and changed nothing: the tensor in which the gradient step counts.
    """

    def __init__(self, step: GradientStep, name: str) -> None:
        self.names = step.names
        self.name = name
        self._optimizer = step.optimizer
        self._max_norm = step.max_norm
        self.skipped = step.skipped
        self.reload()

    def reload(self) -> None:
        """Bind to the optimizer's state tensors, after building or loading."""
        self.adam = AdamState(self._optimizer)
        device = self.adam.step.device
        self._lr_value = float(self.adam.group["lr"])
        self._lr = torch.tensor(self._lr_value, device=device)

    def tensors(self) -> list[list[Tensor]]:
        """Return what `step` changes and reads: values, both moments, and count, rate and skips."""
        adam = self.adam
        return [adam.values, adam.first, adam.second, [adam.step, self._lr, self.skipped]]

    def fits(self) -> bool:
        """Return whether its step is all there is to do: nobody watches the optimizer or left a gradient for it."""
        return self.adam.is_current() and not any(parameter.grad is not None for parameter in self.adam.parameters)

    def follow_lr(self) -> None:
        """Hand the learning rate to the graph, for which a Python number would be a constant."""
        lr = self.adam.group["lr"]
        if lr != self._lr_value:
            self._lr_value = lr
            self._lr.fill_(lr)

    def step(self, gradients: Sequence[Tensor], total: Tensor, tensors: list[list[Tensor]]) -> tuple[Tensor, Tensor]:
        """Update in place, as torch.optim.Adam and AdamW do; nothing changes where norm or loss is not finite.

        Args:
            gradients: one for each parameter.
            total: the loss that they are of, 0-d.
            tensors: those of `tensors`.

        Returns:
            The norm of the gradients before clipping, and whether the step was taken; both 0-d.
        """
        values, firsts, seconds, (count, lr, skipped) = tensors
        group = self.adam.group
        beta1, beta2 = group["betas"]
        decay, eps = group["weight_decay"], group["eps"]
        norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
        finite = (norm + total).isfinite()
        skipped.add_((~finite).to(skipped.dtype))
        # as torch's clip_grad_norm_, which divides by a little more than the norm
        scale = torch.ones_like(norm) if self._max_norm is None else (self._max_norm / (norm + 1e-6)).clamp(max=1.0)
        count.add_(finite.to(count.dtype))
        steps = count.clamp(min=1.0)  # a first step that is skipped would divide by zero below
        size = torch.where(finite, lr / _bias_correction(beta1, steps), 0.0)
        spread = _bias_correction(beta2, steps).rsqrt()
        rate1, rate2 = (torch.where(finite, 1 - beta, 0.0) for beta in (beta1, beta2))
        shrink = torch.where(finite, lr * decay, 0.0)
        size, spread, rate1, rate2, shrink, scale, stepped = _computed_once(
            size, spread, rate1, rate2, shrink, scale, finite.to(norm.dtype)
        )
        for value, gradient, first, second in zip(values, gradients, firsts, seconds, strict=True):
            gradient = torch.where(stepped > 0, gradient * scale, 0.0)
            if decay and self.adam.decoupled:
                value.sub_(shrink * value)
            elif decay:
                gradient = gradient + decay * value
            first.add_(rate1 * (gradient - first))
            second.add_(rate2 * (gradient * gradient - second))
            value.sub_(size * first / (second.sqrt() * spread + eps))
        return norm, finite


def _computed_once(*numbers: Tensor) -> tuple[Tensor, ...]:
    """Return the same numbers, 0-d, in memory that the compiler fills before the loops over the parameters.

    It would put what a number is made of into these loops, and compute its powers and roots again for every 16
    elements: most of the time of a step. What a reduction returns, it keeps.
    """
    if not numbers[0].is_cpu:  # there each thread computes them beside the others, and a kernel more costs its launch
        return numbers
    return torch.stack(numbers).expand(_REDUCED, len(numbers)).amax(0).unbind(0)


def _bias_correction(beta: float, steps: Tensor) -> Tensor:
    """Return `1 - beta**steps`, 0-d; the plain difference in float32 is off by 3e-5 of itself in the first step."""
    return -torch.expm1(steps * math.log(beta)) if beta else torch.ones_like(steps)
