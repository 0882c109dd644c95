"""The hook that lets networks start over."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, PositiveInt

from rlcore import hookimpl
from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Context

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from rlcore.types import Trainer


class Resets:
    """Sets parts of the model to their first weights, and their optimizers to the state without steps.

    Against overfitting to the earliest frames (Nikishin et al., 2022, arXiv 2205.07802); BRO has it for all networks
    (Nauman et al., 2024, arXiv 2405.16158). Running statistics of the parts are set back too. The buffer keeps its
    frames. A reset comes before the updates of the first iteration that has passed its place. A second reset gives the
    weights of the first one.

    Raises:
        ConfigError: the model has no such part, the run has several policies, or an optimizer steps a part that is set
            back and one that is not.
    """

    class Config(BaseModel, extra="forbid"):
        """When, and what."""

        at: list[PositiveInt] = Field(
            [15_000], min_length=1, description="frames; updates in a run that is counted in them"
        )
        parts: list[str] = Field(default_factory=list, description="of the model; default: all")

    def __init__(self, config: Config, context: Context) -> None:
        if context.built.get("policies"):
            raise ConfigError("[hook] resets knows the parts of one policy; leave it out of a run with several")
        self._at = config.at
        self._done = 0
        model: Any = context.model
        names = config.parts or model.parts()
        self._parts: list[nn.Module] = [_part(model, name) for name in names]
        self._first = [deepcopy(part.state_dict()) for part in self._parts]
        self._optimizers = _optimizers_of(self._parts, context)

    def state_dict(self) -> dict[str, Any]:
        """Return how many resets are done."""
        return {"done": self._done}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set how many resets are done."""
        self._done = int(state["done"])

    @hookimpl
    def pre_optim_steps(self, trainer: Trainer) -> None:
        """Set back what is due."""
        due = sum(place <= trainer.progress.now for place in self._at)
        if due > self._done:
            self._done = due
            self._reset()

    def _reset(self) -> None:
        for part, first in zip(self._parts, self._first, strict=True):
            part.load_state_dict(first)
        for optimizer in self._optimizers:
            optimizer.state.clear()


def _part(model: Any, name: str) -> nn.Module:
    """Return a part of the model.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in model.parts():
        raise ConfigError(
            f"[hook] resets: the model has no part {name!r}{did_you_mean(name, model.parts())}; it has "
            f"{', '.join(model.parts())}"
        )
    return getattr(model, name)  # type: ignore[no-any-return]


def _optimizers_of(parts: list[nn.Module], context: Context) -> list[Optimizer]:
    """Return the optimizers that step these parts.

    Raises:
        ConfigError: one steps other parts besides.
    """
    reset = {id(parameter) for part in parts for parameter in part.parameters()}
    optimizers = []
    for name, optimizer in context.optimizers.items():
        stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if not stepped & reset:
            continue
        if stepped - reset:
            raise ConfigError(
                f"[hook] resets: optimizer {name!r} steps parts that are set back and others; give each its own "
                "[[optimizer]] with parameters = [...], or leave the key parts out"
            )
        optimizers.append(optimizer)
    return optimizers
