"""Schedules: a number of an optimizer, or one that a part declares, as a function of progress, without state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Context, Part, Progress, Scheduler, with_defaults

if TYPE_CHECKING:
    import torch


# the kinds whose parts may declare numbers
SCHEDULABLE: Final = ("loss", "model", "buffer")


class ScheduleConfig(BaseModel, extra="forbid", allow_inf_nan=False):
    """What is scheduled, and where it ends."""

    target: str = Field(
        "lr",
        description="a number of the optimizers, 'NAME.number' for that of one; or of a part: 'loss.clip_epsilon'",
    )
    final: float = Field(0.0, ge=0, description="final value, as a fraction of the initial one")
    fraction: float = Field(1.0, gt=0, le=1, description="fraction of the run in which it gets there")

    def moved(self, progress: Progress) -> float:
        """Return how much of the way is done, from 0 to 1."""
        return min(1.0, progress.fraction / self.fraction)


class _Schedule:
    """Keeps what is scheduled, and where it ends."""

    Config = ScheduleConfig

    def __init__(self, config: ScheduleConfig, context: Context) -> None:
        self.target = config.target
        self._config = config


class Linear(_Schedule):
    """From the initial value to `final` times it, linear in frames."""

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value after `progress.frames`."""
        return initial * (1 - (1 - self._config.final) * self._config.moved(progress))


class Cosine(_Schedule):
    """Half a cosine from the initial value to `final` times it.

    Loshchilov and Hutter, 2017, arXiv 1608.03983, equation 5, without restarts.
    """

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value after `progress.frames`."""
        final, moved = self._config.final, self._config.moved(progress)
        return initial * (final + (1 - final) * 0.5 * (1 + math.cos(math.pi * moved)))


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


@dataclass(frozen=True)
class ScheduledOfPart:
    """A number that a part declares, with the scheduler that sets it.

    Attributes:
        numbers: those of the part.
        initial: the value that the part was built with.
        check: that of the part.
    """

    scheduler: Scheduler
    number: str
    numbers: MutableMapping[str, Any]
    initial: float
    check: Callable[[str, float], None]

    def apply(self, progress: Progress) -> None:
        """Set the number to its value now."""
        value = self.scheduler.value(self.initial, progress)
        self.check(self.number, value)
        if isinstance(self.numbers[self.number], int | float):
            self.numbers[self.number] = value
        else:
            self.numbers[self.number].fill_(value)

    def check_end(self) -> None:
        """See that the part takes the value that the schedule ends at.

        Raises:
            ConfigError: it does not.
        """
        try:
            self.check(self.number, self.scheduler.value(self.initial, Progress(1, frames=1)))
        except ConfigError as error:
            raise ConfigError(f"{error} (at the end of the schedule of {self.scheduler.target!r})") from error

    def now(self) -> float:
        """Return the number."""
        return float(self.numbers[self.number])


def bind(
    schedulers: Iterable[Scheduler],
    optimizers: Mapping[str, torch.optim.Optimizer],
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> list[Scheduled | ScheduledOfPart]:
    """Find the numbers that the schedulers set.

    Args:
        schedulers: each with a target.
        optimizers: by name.
        parts: what is built, by kind; those of `SCHEDULABLE` may declare numbers.

    Raises:
        ConfigError: no such optimizer, part or number, or two schedulers of one number.
    """
    numbers = {kind: with_defaults(parts.get(kind), Part).schedulable for kind in SCHEDULABLE}
    declared = {kind: of_part for kind, of_part in numbers.items() if of_part is not None}
    bound: list[Scheduled | ScheduledOfPart] = []
    taken: set[tuple[int, str]] = set()
    for scheduler in schedulers:
        found = _found(scheduler, optimizers, declared, parts)
        for scheduled in found:
            owner = scheduled.optimizer if isinstance(scheduled, Scheduled) else scheduled.numbers
            if (id(owner), scheduled.number) in taken:
                raise ConfigError(f"[scheduler] target: two of them set {scheduler.target!r}; leave one out")
            taken.add((id(owner), scheduled.number))
        bound += found
    return bound


def _found(
    scheduler: Scheduler,
    optimizers: Mapping[str, torch.optim.Optimizer],
    declared: Mapping[str, MutableMapping[str, Any]],
    parts: Mapping[str, Any],
) -> list[Scheduled | ScheduledOfPart]:
    name, _, number = scheduler.target.rpartition(".")
    if name not in optimizers and name in declared:
        if number not in declared[name]:
            raise ConfigError(
                f"[scheduler] target: the {name} declares no number {number!r}{did_you_mean(number, declared[name])}; "
                f"{_choice(optimizers, declared)}"
            )
        initial = float(declared[name][number])
        declared[name][number] = initial  # a part that sets it otherwise refuses
        check = with_defaults(parts[name], Part).check_number
        scheduled = ScheduledOfPart(scheduler, number, declared[name], initial, check)
        scheduled.check_end()
        return [scheduled]
    if name and name not in optimizers:
        guess = did_you_mean(name, [*optimizers, *declared])
        raise ConfigError(f"[scheduler] target: no optimizer {name!r}{guess}; {_choice(optimizers, declared)}")
    chosen = [optimizers[name]] if name else list(optimizers.values())
    for optimizer in chosen:
        if number not in _numbers(optimizer):
            raise ConfigError(
                f"[scheduler] target: the optimizer has no number {number!r}"
                f"{did_you_mean(number, _numbers(optimizer))}; {_choice(optimizers, declared)}"
            )
    return [Scheduled(scheduler, number, optimizer, float(optimizer.defaults[number])) for optimizer in chosen]


def _choice(optimizers: Mapping[str, torch.optim.Optimizer], declared: Mapping[str, MutableMapping[str, Any]]) -> str:
    """Say which targets there are."""
    of_optimizers = [number for optimizer in optimizers.values() for number in _numbers(optimizer)]
    of_parts = [f"{kind}.{number}" for kind, numbers in declared.items() for number in numbers]
    return f"there are {', '.join(dict.fromkeys([*of_optimizers, *of_parts]))}"


def _numbers(optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the names of the settings of an optimizer that are numbers."""
    return [
        name
        for name, value in optimizer.defaults.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
