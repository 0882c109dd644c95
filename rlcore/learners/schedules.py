"""Schedules: a learning rate or another number of an optimizer as a function of progress, without state."""

from __future__ import annotations

import math

from pydantic import BaseModel, Field

from rlcore.types.context import Context
from rlcore.types.progress import Progress


class ScheduleConfig(BaseModel, extra="forbid"):
    """What is scheduled, and where it ends."""

    target: str = Field("lr", description="a number of the optimizer, or 'NAME.number' for one optimizer of several")
    final: float = Field(0.0, ge=0, description="final value, as a share of the initial one")


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
