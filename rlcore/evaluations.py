"""The newest and the best evaluation of a run, over all its resumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from rlcore.records import EvaluationResult


def better(new: float, old: float | None) -> bool:
    """Return whether a mean return is better than an earlier one, which may be absent, or not a number."""
    return old is None or math.isnan(old) or new > old


class Evaluations:
    """Keeps two evaluations.

    Attributes:
        last: the newest.
        best: the one with the highest mean return.
        observer: True; evaluations do not change what is trained.
    """

    observer: Final = True

    def __init__(self) -> None:
        self.last: EvaluationResult | None = None
        self.best: EvaluationResult | None = None

    def take(self, result: EvaluationResult) -> None:
        """Take a new evaluation in."""
        self.last = result
        if self.best is None or better(result.mean_return, self.best.mean_return):
            self.best = result

    def state_dict(self) -> dict[str, Any]:
        """Return both."""
        return {"last": self.last and asdict(self.last), "best": self.best and asdict(self.best)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set both."""
        self.last, self.best = (state[name] and EvaluationResult(**state[name]) for name in ("last", "best"))
