"""The clocks of a run: environment frames, optimizer updates, iterations, episodes; and when something is due.

One of them, frames or updates, is the clock by which the run has its length: whatever asks how far the run is, asks it.

Wall-clock figures are not here: they differ between two runs that are otherwise equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any, Final, Literal

from rlcore.errors import ConfigError, did_you_mean

# the horizon of a run that ends with its data, or when it is stopped
ENDLESS: Final = 2**63 - 1
CLOCKS: Final = ("frames", "updates", "iterations")
Clock = Literal["frames", "updates"]
_CLOCK: Final = "clock"


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        total_frames: the horizon of every schedule, in environment frames; `ENDLESS` for none.
        total_updates: the horizon in updates; where it is given, updates are the clock of the run.
        updates_per_iteration: of a run that collects nothing; 1 where an iteration is a batch.
        frames: environment frames collected (valid steps times frame skip).
        updates: optimizer steps taken.
        iterations: collect-and-optimise rounds finished.
        episodes: episodes finished during collection.
    """

    total_frames: int
    frames: int = 0
    updates: int = 0
    iterations: int = 0
    episodes: int = 0
    total_updates: int | None = None
    updates_per_iteration: int = 1

    @property
    def clock(self) -> Clock:
        """What the length of the run is counted in."""
        return "frames" if self.total_updates is None else "updates"

    @property
    def now(self) -> int:
        """How far the run is, on its clock."""
        return self.frames if self.total_updates is None else self.updates

    @property
    def total(self) -> int:
        """How long the run is, on its clock; `ENDLESS` where it has no end."""
        return self.total_frames if self.total_updates is None else self.total_updates

    @property
    def unit(self) -> str:
        """One of what the clock counts: `frame` or `update`."""
        return unit_of(self.clock)

    def after(self, frames: int) -> int:
        """Return what the clock of the run says once so many more frames are collected, before any update."""
        return self.frames + frames if self.total_updates is None else self.updates

    @property
    def fraction(self) -> float:
        """What has passed of the horizon, between 0 and 1.

        Raises:
            ConfigError: the run has no horizon.
        """
        if self.total == ENDLESS:
            raise ConfigError(
                "total_frames = None: something is scheduled by the fraction of the run that has passed, and a run "
                "without an end has none: give total_frames, or schedule by frames"
            )
        return min(1.0, self.now / self.total)

    @property
    def unfinished(self) -> int:
        """Updates of an iteration that is not finished, since something was due within it."""
        return 0 if self.now >= self.total else self.updates % self.updates_per_iteration

    def between_iterations(self) -> Progress:
        """Return the clocks at the end of the last iteration that was finished; schedules move there alone."""
        return replace(self, updates=self.updates - self.unfinished) if self.unfinished else self

    def state_dict(self) -> dict[str, Any]:
        """Return the clocks, and which of them is that of the run unless it is frames; the horizon is the config's."""
        state = asdict(self)
        del state["total_frames"], state["total_updates"], state["updates_per_iteration"]
        return state if self.clock == "frames" else {**state, _CLOCK: self.clock}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the clocks from `state_dict()`.

        Raises:
            ValueError: something in it is no clock.
            ConfigError: it is that of a run which has its length by another clock.
        """
        if state.get(_CLOCK, "frames") != self.clock:
            raise ConfigError(
                f"the run is counted in {state.get(_CLOCK, 'frames')}, and [run] total_{self.clock} would count it in "
                f"{self.clock}; its schedules and intervals would mean something else: give "
                f"total_{state.get(_CLOCK, 'frames')}, or begin another run"
            )
        unknown = set(state) - set(self.state_dict())
        if unknown:
            raise ValueError(f"unknown clocks: {', '.join(sorted(unknown))}")
        for name, value in state.items():
            if name != _CLOCK:
                setattr(self, name, value)


def clock_of(clocks: Mapping[str, Any]) -> str:
    """Return which of saved clocks is that of the run."""
    return str(clocks.get(_CLOCK, "frames"))


def unit_of(clock: str) -> str:
    """Return one of what a clock counts: `frame` of `frames`."""
    return clock[:-1]


def reached(clocks: Mapping[str, Any]) -> int:
    """Return how far a run was by its own clock, from what `Progress.state_dict()` returned."""
    return int(clocks[clock_of(clocks)])


class Every:
    """Says when something that happens at intervals is due.

    Args:
        interval: on the clock of the run, which counts frames unless it says `total_updates`; or a mapping with one
            clock: `{"updates": 500}`, `{"iterations": 10}`.

    An interval is due when its clock has passed a multiple of it since the last time. What is due is a
    function of the clock alone, so a resumed run is due at the same places.

    Raises:
        ConfigError: the interval is not positive, or names an unknown clock.
    """

    def __init__(self, interval: int | Mapping[str, int]) -> None:
        if isinstance(interval, Mapping):
            if len(interval) != 1:
                raise ConfigError(f"an interval names one clock of {', '.join(CLOCKS)}; found {dict(interval)}")
            self.clock: str | None
            ((self.clock, self.interval),) = interval.items()
        else:
            self.clock, self.interval = None, interval
        if self.clock is not None and self.clock not in CLOCKS:
            raise ConfigError(f"unknown clock {self.clock!r}{did_you_mean(self.clock, CLOCKS)}")
        if self.interval <= 0:
            raise ConfigError(f"an interval must be positive; found {self.interval}")
        self._clock = attrgetter(self.clock or "now")
        self._last = 0

    def due(self, progress: Progress) -> bool:
        """Return True once per interval, and remember it."""
        passed = self.passed(progress)
        self.catch_up(progress)
        return passed

    def passed(self, progress: Progress) -> bool:
        """Return whether it is due, without remembering it."""
        return bool(self._clock(progress) // self.interval != self._last)

    def next(self, progress: Progress) -> int:
        """Return the value of the clock at which this is due again."""
        return int(self._clock(progress) // self.interval + 1) * self.interval

    def catch_up(self, progress: Progress) -> None:
        """Forget what was due up to now, as after a resume."""
        self._last = self._clock(progress) // self.interval

    def __str__(self) -> str:
        return f"every {self.interval:,} {self.clock or 'frames or updates'}"
