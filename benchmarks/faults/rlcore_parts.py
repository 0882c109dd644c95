"""A loose plugin file for the rlcore runs: a hook that notes the frames, and a logger that raises."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import LOGGER_FAILS

from rlcore import Component, hookimpl


class Note:
    """Writes the frames into the file that the environment variable `PROGRESS` names, after each iteration."""

    observer = True

    def __init__(self, config: Any, context: Any) -> None:
        self._path = Path(os.environ["PROGRESS"])

    @hookimpl
    def post_steps(self, trainer: Any) -> None:
        """Write the frames."""
        temporary = self._path.with_suffix(".new")
        temporary.write_text(str(trainer.progress.frames))
        temporary.replace(self._path)


class Raising:
    """Raises from a frame on."""

    def __init__(self, config: Any, context: Any) -> None: ...

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Raise."""
        if step >= LOGGER_FAILS:
            raise RuntimeError("the logger has failed")

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""


@hookimpl
def provide_components() -> list[Component]:
    """Return both."""
    return [Component("hook", "note", Note), Component("logger", "raising", Raising)]
