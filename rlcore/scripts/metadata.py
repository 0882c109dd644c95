"""What the manifest of a checkpoint says besides: what a script wants, and the number that rates the checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rlcore.errors import did_you_mean
from rlcore.scripts.arguments import Arguments
from rlcore.scripts.registering import RegisteringTrainer

log = logging.getLogger(__name__)


def metadata(trainer: RegisteringTrainer) -> Callable[[], dict[str, Any]] | None:
    """Return what is asked at each save; None where nobody wants to say anything."""
    ask_script, rated_by = trainer.checkpoint_metadata, _rated_by(trainer)
    if ask_script is None and rated_by is None:
        return None

    def ask() -> dict[str, Any]:
        said = {} if ask_script is None else dict(ask_script(trainer))
        if rated_by is None or rated_by in said:
            return said
        counts = {"collected_frames": trainer.progress.frames, "optim_steps": trainer.progress.updates}
        rating = counts.get(rated_by, trainer.metrics.newest(rated_by))
        if rating is None and trainer.progress.frames:
            log.warning(
                "keep_best: there is no metric %r at frame %d%s", rated_by, trainer.progress.frames,
                did_you_mean(rated_by, trainer.metrics.latest),
            )  # fmt: skip
        return said if rating is None else {**said, rated_by: rating}

    return ask


def _rated_by(arguments: Arguments) -> str | None:
    """Return the name of the number by which a checkpoint is the best; None where that is its evaluation."""
    rotation = arguments.checkpoint_rotation
    return rotation.keep_best[0] if rotation is not None and isinstance(rotation.keep_best, tuple) else None
