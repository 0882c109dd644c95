"""The hook."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from rlcore import Context, Episode, Trainer, hookimpl


class ReturnWatch:
    """Stops the run once the mean return of the latest episodes reaches a threshold."""

    class Config(BaseModel, extra="forbid"):
        """When to stop."""

        threshold: float = Field(description="mean return at which the run stops")
        episodes: int = Field(20, ge=1, description="episodes that the mean is taken over")

    def __init__(self, config: Config, context: Context) -> None:
        self._threshold = config.threshold
        self._returns: deque[float] = deque(maxlen=config.episodes)
        self._reached: int | None = None

    @hookimpl
    def episode_end(self, episode: Episode) -> None:
        """Take the return of an episode in."""
        self._returns.append(episode.return_)

    @hookimpl
    def post_steps(self, trainer: Trainer) -> None:
        """Ask for the stop, once in a run: one that is resumed afterwards was meant to go on."""
        mean = self._mean()
        if self._reached is None and mean is not None and mean >= self._threshold:
            self._reached = trainer.progress.frames
            last = len(self._returns)
            trainer.request_stop(f"the mean return of {last} episodes is {mean:.4g}, at least {self._threshold:g}")

    @hookimpl
    def post_steps_log(self) -> dict[str, float] | None:
        """Return the mean."""
        mean = self._mean()
        return None if mean is None else {"return-watch/mean_return": mean}

    def state_dict(self) -> dict[str, Any]:
        """Return the latest returns, and the frame at which the threshold was reached."""
        return {"returns": list(self._returns), "reached": self._reached}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._returns.clear()
        self._returns.extend(state["returns"])
        self._reached = state["reached"]

    def _mean(self) -> float | None:
        """Return the mean of a full window; a few lucky episodes do not end a run."""
        if len(self._returns) < (self._returns.maxlen or 0):
            return None
        return sum(self._returns) / len(self._returns)
