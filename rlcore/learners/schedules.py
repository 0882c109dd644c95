"""Schedules: a learning rate or another number of an optimizer as a function of progress, without state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Scheduler
from rlcore.types.context import Context
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    import torch


class ScheduleConfig(BaseModel, extra="forbid"):
    """What is scheduled, and where it ends."""

    target: str = Field("lr", description="a number of the optimizer, or 'NAME.number' for one optimizer of several")
    final: float = Field(0.0, ge=0, description="final value, as a fraction of the initial one")


class Linear:
    """From the initial value to `final` times it, linear in frames."""

    Config = ScheduleConfig

    def __init__(self, config: ScheduleConfig, context: Context) -> None:
        self.target = config.target
        self._final = config.final

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value after `progress.frames`."""
        return initial * (1 - (1 - self._final) * progress.fraction)


class Cosine:
    """Half a cosine from the initial value to `final` times it.

    Loshchilov and Hutter, 2017, arXiv 1608.03983, equation 5, without restarts.
    """

    Config = ScheduleConfig

    def __init__(self, config: ScheduleConfig, context: Context) -> None:
        self.target = config.target
        self._final = config.final

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value after `progress.frames`."""
        return initial * (self._final + (1 - self._final) * 0.5 * (1 + math.cos(math.pi * progress.fraction)))


@dataclass(frozen=True)
class Scheduled:
    """A number of an optimizer, with the scheduler that sets it.

    Attributes:
        initial: the value that the optimizer was built with.
    """

    scheduler: Scheduler
    number: str
    optimizer: torch.optim.Optimizer
    initial: float

    def apply(self, progress: Progress) -> None:
        """Set the number to its value now."""
        value = self.scheduler.value(self.initial, progress)
        for group in self.optimizer.param_groups:
            group[self.number] = value


def bind(schedulers: Iterable[Scheduler], optimizers: Mapping[str, torch.optim.Optimizer]) -> list[Scheduled]:
    """Find the numbers that the schedulers set.

    Raises:
        ConfigError: no such optimizer or number.
    """
    bound = []
    for scheduler in schedulers:
        name, _, number = scheduler.target.rpartition(".")
        if name and name not in optimizers:
            raise ConfigError(f"[scheduler] target: no optimizer {name!r}{did_you_mean(name, optimizers)}")
        chosen = [optimizers[name]] if name else list(optimizers.values())
        for optimizer in chosen:
            if number not in optimizer.defaults:
                raise ConfigError(
                    f"[scheduler] target: the optimizer has no number {number!r}"
                    f"{did_you_mean(number, optimizer.defaults)}"
                )
            bound.append(Scheduled(scheduler, number, optimizer, float(optimizer.defaults[number])))
    return bound
