"""The optimizer `laprop`: gradients are clipped by the weights, normalised, and then averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from rlcore.learners import OptimizerConfig, parameters_of
from rlcore.types import Context


class LaProp(torch.optim.Optimizer):
    """LaProp (Ziyin et al., 2020, arXiv 2002.04839) behind adaptive gradient clipping (Brock et al., 2021).

    The gradient of each tensor is scaled so that its norm is at most `clipping` times that of the tensor (Brock et al.,
    arXiv 2102.06171, there by unit). It is divided by the root of the second moment, and what is left is averaged;
    Adam divides the average. The learning rate grows from 0 over the first `warmup` steps.
    """

    class Config(OptimizerConfig):
        """The keys of the section, besides `weight_decay`, `parameters`, `losses` and `every`."""

        lr: float = Field(4e-5, gt=0, description="learning rate")
        beta_momentum: float = Field(0.9, ge=0, lt=1, description="decay of the average of normalised gradients")
        beta_scale: float = Field(0.999, ge=0, lt=1, description="decay of the second moment")
        eps: float = Field(1e-20, gt=0, description="added to the root of the second moment")
        clipping: float = Field(
            0.3, ge=0, description="largest norm of a gradient, in norms of its tensor; 0: no limit"
        )
        least_norm: float = Field(1e-3, gt=0, description="norm of a tensor that has a smaller one")
        warmup: int = Field(1000, ge=0, description="steps over which the learning rate grows from 0")

    def __init__(self, config: Config, context: Context) -> None:
        # the losses that it minimises and its pace, which the learner reads
        self.losses = tuple(config.losses)
        self.every = config.every
        defaults = config.model_dump(exclude={"parameters", "losses", "every"})
        super().__init__(parameters_of(config.parameters, context), defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            if moved:
                self._move(moved, [parameter.grad for parameter in moved], group)
        return loss

    def _move(self, parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        """Change parameters by their gradients, all by the same few calls."""
        states = [self._state_of(parameter) for parameter in parameters]
        steps = [float(state["step"]) for state in states]  # so far; the first one is taken at a rate of 0
        torch._foreach_add_([state["step"] for state in states], 1.0)
        momenta, scales = ([state[name] for state in states] for name in ("momentum", "scale"))
        beta, beta_scale = group["beta_momentum"], group["beta_scale"]
        gradients = _clipped(parameters, gradients, group)
        torch._foreach_mul_(scales, beta_scale)
        torch._foreach_addcmul_(scales, gradients, gradients, 1 - beta_scale)
        roots = torch._foreach_div(scales, [1 - beta_scale ** (step + 1) for step in steps])
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_lerp_(momenta, torch._foreach_div(gradients, roots), 1 - beta)
        warmup = group["warmup"]
        rates = [group["lr"] * (min(1.0, step / warmup) if warmup else 1.0) for step in steps]
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, [1 - rate * group["weight_decay"] for rate in rates])
        moves = [-rate / (1 - beta ** (step + 1)) for rate, step in zip(rates, steps, strict=True)]
        torch._foreach_add_(parameters, torch._foreach_mul(momenta, moves))

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the count of steps and the moments of a parameter, zeros at first."""
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["momentum"], state["scale"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return state


def _clipped(parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
    """Return the gradients of tensors, each no longer than its tensor allows."""
    if not group["clipping"]:
        return gradients
    limits = torch._foreach_norm(parameters)
    torch._foreach_clamp_min_(limits, group["least_norm"])
    torch._foreach_mul_(limits, group["clipping"])
    factors = torch._foreach_div(torch._foreach_norm(gradients), limits)
    torch._foreach_clamp_min_(factors, 1.0)
    return list(torch._foreach_div(gradients, factors))
