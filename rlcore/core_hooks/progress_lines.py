"""Lines in the log that say how far a run is, where no bar shows it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.hooks.specs import hookimpl

if TYPE_CHECKING:
    from rlcore.training.loop import Loop
    from rlcore.types import EvaluationResult

log = logging.getLogger(__name__)

# of silence, after which the next iteration says where the run is
_SECONDS: Final = 60.0


class ProgressLines:
    """Says where a run is: at its start, evaluations and checkpoints, and once a minute.

    Attributes:
        observer: True; it changes nothing.
        internal: True; it belongs to the command, and no figures of hooks speak of it.
    """

    observer: Final = True
    internal: Final = True

    def __init__(self) -> None:
        self._last_line_at = time.monotonic()

    @hookimpl
    def setup(self, trainer: Loop) -> None:
        """Say where the run begins, or goes on."""
        now, end = trainer.progress.now, f"{trainer.stop_at:,}"
        if now >= trainer.stop_at:
            self._say(trainer, f"is at its end, {end}, so that nothing is trained")
        else:
            self._say(trainer, f"goes on; it ends at {end}" if now else f"begins; it ends at {end}")

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Loop) -> None:
        """Say what was evaluated."""
        self._say(trainer, f"evaluation: mean return {result.mean_return:,.1f} of {len(result.returns)} episodes")

    @hookimpl
    def checkpoint_saved(self, path: Path, trainer: Loop) -> None:
        """Say what was saved."""
        self._say(trainer, f"checkpoint {path.name}")

    @hookimpl
    def post_steps_log(self, trainer: Loop) -> None:
        """Say where the run is, when nothing was said for long."""
        if time.monotonic() - self._last_line_at >= _SECONDS:
            progress, speed = trainer.progress, trainer.done_here / trainer.seconds_trained
            self._say(trainer, f"{progress.now / trainer.stop_at:.0%}, {speed:,.0f} {progress.clock} per second")

    def _say(self, trainer: Loop, what: str) -> None:
        self._last_line_at = time.monotonic()
        progress = trainer.progress
        log.info("%s: %s %s: %s", trainer.run_info.name, progress.unit, f"{progress.now:,}", what)
