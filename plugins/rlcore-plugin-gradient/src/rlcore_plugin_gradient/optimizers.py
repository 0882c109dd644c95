"""Optimizers by name, each over the model parts and the losses that its section says.

The update rule is torch's; the gradient step around it is in `rlcore/learners/gradient_step.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import torch
from pydantic import BaseModel, Field

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Context, part_of

if TYPE_CHECKING:
    from torch.nn import Parameter


# what a section says to the learner, and not to torch
KEYS_OF_LEARNER: Final = ("parameters", "losses", "every")

Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(BaseModel, extra="forbid", allow_inf_nan=False):
    """What every optimizer section can say."""

    lr: float = Field(3e-4, gt=0, description="learning rate")
    weight_decay: float = Field(0.0, ge=0, description="weight decay")
    parameters: list[str] = Field(default_factory=list, description="model parts to optimise; default: the whole model")
    losses: list[str] = Field(default_factory=list, description="losses to minimise; default: all of loss_*")
    every: int = Field(1, ge=1, description="updates to a step: 2 steps in every second update")


class AdamConfig(OptimizerConfig):
    """Adam (Kingma and Ba, 2015, arXiv 1412.6980) and AdamW."""

    betas: tuple[Decay, Decay] = Field((0.9, 0.999), description="decay of the two moments")
    eps: float = Field(1e-8, gt=0, description="added to the root of the second moment")
    amsgrad: bool = Field(False, description="divide by the largest second moment so far (Reddi et al., 2018)")


class SGDConfig(OptimizerConfig):
    """Stochastic gradient descent."""

    momentum: float = Field(0.0, ge=0, description="momentum")
    dampening: float = Field(0.0, description="how much of a new gradient the momentum leaves out")
    nesterov: bool = Field(False, description="Nesterov momentum, which needs momentum and no dampening")


def adam(config: AdamConfig, context: Context) -> torch.optim.Optimizer:
    """Build `torch.optim.Adam`, fused."""
    return _fused(torch.optim.Adam, config, context)


def adamw(config: AdamConfig, context: Context) -> torch.optim.Optimizer:
    """Build `torch.optim.AdamW`, fused."""
    return _fused(torch.optim.AdamW, config, context)


def sgd(config: SGDConfig, context: Context) -> torch.optim.Optimizer:
    """Build `torch.optim.SGD`, fused."""
    return _fused(torch.optim.SGD, config, context)


def _fused(kind: type[torch.optim.Optimizer], config: OptimizerConfig, context: Context) -> torch.optim.Optimizer:
    return build_optimizer(kind, config, context, {**config.model_dump(), "fused": True})


def build_optimizer(
    kind: type[torch.optim.Optimizer], config: Any, context: Context, arguments: Mapping[str, Any]
) -> torch.optim.Optimizer:
    """Return an optimizer of torch over the parts that its section names, with the losses that it minimises.

    Args:
        kind: its class.
        config: has the keys `parameters`, `losses` and `every`.
        context: of the component.
        arguments: of the constructor; those keys may be among them.

    Raises:
        ConfigError: the model has no such part, or torch refuses a value.
    """
    own = {name: value for name, value in arguments.items() if name not in KEYS_OF_LEARNER}
    parameters = _named_parameters(config.parameters, context)
    try:
        optimizer = kind(parameters, **own)
    except ValueError as error:
        raise ConfigError(f"[optimizer] {context.name!r}: torch.optim.{kind.__name__} refuses it: {error}") from error
    optimizer.losses = tuple(config.losses)  # type: ignore[attr-defined]
    optimizer.every = config.every  # type: ignore[attr-defined]
    return optimizer


def _named_parameters(parts: list[str], context: Context) -> list[tuple[str, Parameter]]:
    """Return what `parameters_of` does, with names, which the optimizer saves: a state is of these parameters alone."""
    model: Any = context.model
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [(names[id(parameter)], parameter) for parameter in parameters_of(parts, context)]


def parameters_of(parts: list[str], context: Context) -> list[Parameter]:
    """Return the trainable parameters of these parts of the model, each once; all of the model's without names.

    Raises:
        ConfigError: the model has no such part, or these have no weights to train.
    """
    model: Any = context.model
    modules = [model] if not parts else []
    for part in parts:
        if part not in context.model.parts():
            raise ConfigError(
                f"[optimizer] {context.name!r}: the model has no part {part!r}"
                f"{did_you_mean(part, context.model.parts())}; it has {', '.join(context.model.parts())}"
            )
        modules.append(part_of(model, part))
    found = list({id(p): p for module in modules for p in module.parameters() if p.requires_grad}.values())
    if not found:
        raise ConfigError(
            f"[optimizer] {context.name!r}: {f'the parts {parts} have' if parts else 'the model has'} no weights to "
            "train, as a target network or a fixed number has none; name other parts in the key `parameters`, or leave "
            "this optimizer out"
        )
    return found
