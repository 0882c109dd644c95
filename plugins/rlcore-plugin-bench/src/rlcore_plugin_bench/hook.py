"""The hook in the runs of a benchmark: it records the curve of a run, which a resume continues."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from rlcore import Context, Episode, EvaluationResult, hookimpl
from rlcore.files import replacing

if TYPE_CHECKING:
    from rlcore.types import Trainer

CURVE: Final = "curve.json"
PROGRESS: Final = "progress.json"
_SECONDS: Final = "curve-seconds.json"
# seconds between two notes of how far the run is
_NOTE_EVERY: Final = 1.0


class LearningCurve:
    """Records two curves: the mean return of the latest training episodes, and that of each evaluation.

    They are in `curve.json` of the run folder, written with each checkpoint and at the end. Their values are part of
    the checkpoints, so that a resumed run has the curve of an uninterrupted one; the seconds, which no two runs have
    alike, are beside them in a file of their own.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """How fine the curve is."""

        episodes: int = Field(100, ge=1, description="training episodes that a point is the mean of, the latest ones")
        points: int = Field(200, ge=1, description="of the curve of training")

    def __init__(self, config: Config, context: Context) -> None:
        self._folder = context.run.folder
        self._points = config.points
        self._latest: deque[float] = deque(maxlen=config.episodes)
        self._training: list[tuple[int, float]] = []
        self._evaluations: list[tuple[int, float]] = []
        self._seconds: dict[int, float] = {}
        self._seconds_before = 0.0
        # a point of this iteration, whose seconds are counted at its end
        self._untimed: int | None = None
        self._noted = 0.0

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Read the seconds of the processes that trained the run so far."""
        now = trainer.progress.now
        if self._folder is not None and now:
            self._seconds = {at: seconds for at, seconds in _read_seconds(self._folder).items() if at <= now}
            self._seconds_before = max(self._seconds.values(), default=0.0)

    @hookimpl
    def episode_end(self, episode: Episode) -> None:
        """Take the return of an episode in."""
        self._latest.append(episode.return_)

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Add a point to the curve of evaluations; one that is made again, as after a kill, replaces the earlier."""
        self._evaluations = [point for point in self._evaluations if point[0] != result.frames]
        self._evaluations.append((result.frames, result.mean_return))
        self._time(result.frames, trainer)

    @hookimpl
    def post_steps(self, trainer: Trainer) -> None:
        """Add a point to the curve of training where one is due."""
        self._time_last(trainer)
        now, total = trainer.progress.now, trainer.progress.total
        last = self._training[-1][0] if self._training else 0
        is_due = now * self._points // total > last * self._points // total
        if self._latest and is_due:
            self._training.append((now, sum(self._latest) / len(self._latest)))
            self._untimed = now
        self._note(now, total)

    @hookimpl
    def checkpoint_saved(self, trainer: Trainer) -> None:
        """Write the curve as far as the checkpoint knows it."""
        self._write(trainer)

    @hookimpl
    def shutdown(self, trainer: Trainer) -> None:
        """Write the whole curve."""
        self._write(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return the points so far, and the returns that the next one is the mean of."""
        return {
            "latest": list(self._latest),
            "training": [list(point) for point in self._training],
            "evaluations": [list(point) for point in self._evaluations],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._latest = deque(state["latest"], maxlen=self._latest.maxlen)
        self._training = [(int(at), float(value)) for at, value in state["training"]]
        self._evaluations = [(int(at), float(value)) for at, value in state["evaluations"]]

    def _time(self, at: int, trainer: Trainer) -> None:
        self._seconds[at] = self._seconds_before + trainer.seconds_trained

    def _time_last(self, trainer: Trainer) -> None:
        if self._untimed is not None:
            self._time(self._untimed, trainer)
            self._untimed = None

    def _note(self, now: int, total: int) -> None:
        """Note how far the run is, for whoever waits for it."""
        clock = time.monotonic()
        if self._folder is not None and clock - self._noted >= _NOTE_EVERY:
            self._noted = clock
            with suppress(OSError):  # nothing depends on it
                unfinished = self._folder / f"{PROGRESS}.new"
                unfinished.write_text(json.dumps({"now": now, "total": total}))
                unfinished.replace(self._folder / PROGRESS)

    def _write(self, trainer: Trainer) -> None:
        if self._folder is None:
            return
        self._time_last(trainer)
        now = trainer.progress.now
        self._time(now, trainer)
        with replacing(self._folder / _SECONDS) as place:
            place.write_text(json.dumps(self._seconds))
        curve = {
            "now": now,
            "clock": trainer.progress.clock,
            "seconds": self._seconds[now],
            "training": self._with_seconds(self._training),
            "evaluations": self._with_seconds(self._evaluations),
        }
        with replacing(self._folder / CURVE) as place:
            place.write_text(json.dumps(curve))

    def _with_seconds(self, points: list[tuple[int, float]]) -> list[tuple[int, float, float | None]]:
        """Return points with their seconds; None where a crash took them."""
        return [(at, value, self._seconds.get(at)) for at, value in points]


def _read_seconds(folder: Path) -> dict[int, float]:
    try:
        return {int(at): float(seconds) for at, seconds in json.loads((folder / _SECONDS).read_text()).items()}
    except (OSError, ValueError, AttributeError):  # without it the curve has no seconds for what was before
        return {}
