"""Two hooks in a loose file, for a config that names it in `plugins.files`.

Try them on the CartPole config, without changing it:

    rlcore train ppo-cartpole.toml --set 'plugins.files=["my_hooks.py"]' \
        --set hook.1.use=stop-when-solved --set hook.1.goal=475 --set hook.2.use=stopwatch
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from rlcore import Component, Context, hookimpl

if TYPE_CHECKING:
    from rlcore import EvaluationResult, Trainer


class StopWhenSolved:
    """Stops the run when several evaluations in a row reach a goal."""

    class Config(BaseModel, extra="forbid"):
        """What counts as solved."""

        goal: float = Field(475.0, description="mean return of an evaluation")
        times: int = Field(2, ge=1, description="evaluations in a row")

    def __init__(self, config: Config, context: Context) -> None:
        self._goal = config.goal
        self._times = config.times
        self._reached = 0

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Count evaluations that reach the goal."""
        self._reached = self._reached + 1 if result.mean_return >= self._goal else 0
        if self._reached >= self._times:
            trainer.request_stop(f"{self._times} evaluations reached {self._goal:g}")

    def state_dict(self) -> dict[str, int]:
        """Return how many evaluations in a row reached the goal."""
        return {"reached": self._reached}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Set how many evaluations in a row reached the goal."""
        self._reached = state["reached"]


class Stopwatch:
    """Logs how an iteration's time divides between collection and optimisation, as `time/…`."""

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        self._collecting_since = 0.0
        self._optimising_since = 0.0
        self._collecting = 0.0

    @hookimpl
    def setup(self) -> None:
        """Begin with the first collection."""
        self._collecting_since = time.perf_counter()

    @hookimpl
    def batch_process(self) -> None:
        """End the collection."""
        self._optimising_since = time.perf_counter()
        self._collecting = self._optimising_since - self._collecting_since

    @hookimpl
    def post_steps_log(self) -> dict[str, float]:
        """End the optimisation, and return both times in seconds."""
        now = self._collecting_since = time.perf_counter()
        return {"time/collecting": self._collecting, "time/optimising": now - self._optimising_since}


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this file."""
    return [
        Component("hook", "stop-when-solved", StopWhenSolved, summary="stops at a goal"),
        Component("hook", "stopwatch", Stopwatch, summary="times collection and optimisation"),
    ]
