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
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)
        return loss

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["momentum"], state["scale"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        steps = float(state["step"])  # so far; the first one is taken at a rate of 0
        state["step"] += 1
        momentum, scale = state["momentum"], state["scale"]
        beta, beta_scale = group["beta_momentum"], group["beta_scale"]
        gradient = _clipped(parameter, gradient, group)
        scale.mul_(beta_scale).addcmul_(gradient, gradient, value=1 - beta_scale)
        root = (scale / (1 - beta_scale ** (steps + 1))).sqrt_().add_(group["eps"])
        momentum.lerp_(gradient / root, 1 - beta)
        rate = group["lr"] * (min(1.0, steps / group["warmup"]) if group["warmup"] else 1.0)
        if group["weight_decay"]:
            parameter.mul_(1 - rate * group["weight_decay"])
        parameter.add_(momentum, alpha=-rate / (1 - beta ** (steps + 1)))


def _clipped(parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
    """Return the gradient of a tensor, no longer than the tensor allows."""
    if not group["clipping"]:
        return gradient
    limit: Tensor = parameter.norm().clamp_(min=group["least_norm"]).mul_(group["clipping"])
    factor: Tensor = (gradient.norm() / limit).clamp_(min=1.0)
    return gradient / factor
