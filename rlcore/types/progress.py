"""The clocks of a run: environment frames, optimizer updates, iterations, episodes; and when something is due.

Wall-clock figures are not here: they differ between two runs that are otherwise equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, Final

from rlcore.errors import ConfigError, did_you_mean

# the horizon of a run that ends with its data, or when it is stopped
ENDLESS: Final = 2**63 - 1
CLOCKS: Final = ("frames", "updates", "iterations")


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        total_frames: the horizon of every schedule, in environment frames; `ENDLESS` for none.
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

    @property
    def fraction(self) -> float:
        """Frames collected as a fraction of the horizon, between 0 and 1.

        Raises:
            ConfigError: the run has no horizon.
        """
        if self.total_frames == ENDLESS:
            raise ConfigError(
                "total_frames = None: something is scheduled by the fraction of the run that has passed, and a run "
                "without an end has none: give total_frames, or schedule by frames"
            )
        return min(1.0, self.frames / self.total_frames)

    def state_dict(self) -> dict[str, Any]:
        """Return the clocks; the horizon belongs to the config."""
        state = asdict(self)
        del state["total_frames"]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the clocks from `state_dict()`.

        Raises:
            ValueError: something in it is no clock.
        """
        unknown = set(state) - set(self.state_dict())
        if unknown:
            raise ValueError(f"unknown clocks: {', '.join(sorted(unknown))}")
        for name, value in state.items():
            setattr(self, name, value)


class Every:
    """Says when something that happens at intervals is due.

    Args:
        interval: environment frames, or a mapping with one other clock: `{"updates": 500}`, `{"iterations": 10}`.

    An interval is due when its clock has passed a multiple of it since the last time. What is due is a
    function of the clock alone, so a resumed run is due at the same places.

    Raises:
        ConfigError: the interval is not positive, or names an unknown clock.
    """

    def __init__(self, interval: int | Mapping[str, int]) -> None:
        if isinstance(interval, Mapping):
            if len(interval) != 1:
                raise ConfigError(f"an interval names one clock of {', '.join(CLOCKS)}; found {dict(interval)}")
            ((self.clock, self.interval),) = interval.items()
        else:
            self.clock, self.interval = "frames", interval
        if self.clock not in CLOCKS:
            raise ConfigError(f"unknown clock {self.clock!r}{did_you_mean(self.clock, CLOCKS)}")
        if self.interval <= 0:
            raise ConfigError(f"an interval must be positive; found {self.interval}")
        self._clock = attrgetter(self.clock)
        self._last = 0

    def due(self, progress: Progress) -> bool:
        """Return True once per interval, and remember it."""
        now = self._clock(progress) // self.interval
        if now == self._last:
            return False
        self._last = now
        return True

    def next(self, progress: Progress) -> int:
        """Return the value of the clock at which this is due again."""
        return int(self._clock(progress) // self.interval + 1) * self.interval

    def catch_up(self, progress: Progress) -> None:
        """Forget what was due up to now, as after a resume."""
        self._last = self._clock(progress) // self.interval

    def __str__(self) -> str:
        return f"every {self.interval:,} {self.clock}"
