"""A hook in a loose file that writes, after each iteration, the system's clock and the frames so far."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel

from rlcore import Component, Context, hookimpl


class IterationTimes:
    """Keeps the times, and writes them at the end or, with `at_once`, as they come."""

    class Config(BaseModel, extra="forbid"):
        """Where to."""

        path: str
        at_once: bool = False

    observer = True
    ranks = "first"

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._lines: list[str] = []

    @hookimpl
    def post_steps(self, batch: Any, trainer: Any) -> None:
        """Note one iteration."""
        self._lines.append(f"{time.monotonic()} {trainer.progress.frames}\n")
        if self._config.at_once:
            self.shutdown()

    @hookimpl
    def shutdown(self) -> None:
        """Write what was noted."""
        with open(self._config.path, "a") as stream:
            stream.writelines(self._lines)
        self._lines.clear()


@hookimpl
def provide_components() -> list[Component]:
    """Return the hook."""
    return [Component("hook", "iteration-times", f"{__name__}:IterationTimes")]
