"""When checkpoints are saved, and what becomes of one that cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rlcore.training.evaluations import better
from rlcore.types.progress import Every, Progress


class SaveSchedule:
    """Decides when to save; remembers the best evaluation.

    Attributes:
        every: the interval.
        on_failure: what follows when a checkpoint cannot be written.
        in_background: whether a checkpoint is written while training goes on.
    """

    def __init__(
        self,
        every: Every,
        keep_best: bool,
        on_failure: Literal["stop", "warn"] = "stop",
        in_background: bool = False,
    ) -> None:
        self.every = every
        self.on_failure = on_failure
        self.in_background = in_background
        self._keep_best = keep_best
        self._best: float | None = None

    def due(self, progress: Progress, evaluation: float | None) -> bool:
        """Return whether to save now: the interval has passed, or the evaluation made here is the best so far."""
        due = self.every.due(progress)
        if evaluation is not None and progress.updates and better(evaluation, self._best):
            self._best = evaluation
            due = due or self._keep_best
        return due

    def state_dict(self) -> dict[str, Any]:
        """Return the best evaluation so far."""
        return {"best": self._best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the best evaluation so far."""
        self._best = state["best"]
