"""Numbers of optimizers that follow a schedule. The schedules themselves are components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Scheduler
from rlcore.types.progress import Progress


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
