"""The collector of runs that collect nothing, since their buffer has its data already."""

from __future__ import annotations

from pydantic import BaseModel

from rlcore.types import Collector, Context


class NoCollector(Collector):
    """Collects nothing: an iteration is what the buffer makes of it, and the run is counted in updates.

    To the loop it is a collector in the background that never writes a step.

    Attributes:
        batch_steps: always 0.
    """

    class Config(BaseModel, extra="forbid"):
        """There is nothing to set."""

    def __init__(self, config: Config, context: Context) -> None:
        self.batch_steps = 0

    def collect(self) -> None:
        """Return None at once."""

    def steps_written(self) -> int:
        """Return 0."""
        return 0
