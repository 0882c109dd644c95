"""The curve of a model of Stable-Baselines3 while it learns: evaluations, or the mean of its latest episodes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback


class CurveCallback(BaseCallback):
    """Records a point now and then; the time of evaluations is not that of training.

    Args:
        steps: of the whole training, over all envs.
        points: of the curve.
        evaluate: returns the mean return of deterministic episodes; None for that of the latest training episodes.
        repeat: frames of each step.
    """

    def __init__(
        self, steps: int, points: int, evaluate: Callable[[Any], float] | None = None, repeat: int = 1
    ) -> None:
        super().__init__()
        self._every, self._evaluate, self._repeat = max(1, steps // points), evaluate, repeat
        self._points: list[tuple[int, float, float]] = []
        self._due, self._began, self._paused = self._every, time.perf_counter(), 0.0

    def _on_training_start(self) -> None:
        self._began = time.perf_counter()

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._due:
            self._due += self._every
            self._record()
        return True

    def _record(self) -> None:
        now = time.perf_counter()
        episodes = self.model.ep_info_buffer or []
        if self._evaluate is not None:
            value = self._evaluate(self.model)
        elif episodes:
            value = statistics.fmean(episode["r"] for episode in episodes)
        else:
            return
        self._points.append((self.num_timesteps * self._repeat, value, round(now - self._began - self._paused, 1)))
        self._paused += time.perf_counter() - now

    @property
    def seconds_evaluating(self) -> float:
        """Seconds that the evaluations took."""
        return self._paused

    def curve(self) -> dict[str, list[Any]]:
        """Return the points as `rlcore bench` reads them."""
        names = ("at", "return", "seconds")
        return {name: [point[place] for point in self._points] for place, name in enumerate(names)}
