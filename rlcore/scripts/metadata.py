"""What the manifest of a checkpoint says besides: what a script wants, and the number that rates the checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from rlcore.checkpoints.retention import CheckpointRotation
from rlcore.errors import did_you_mean
from rlcore.training.loop import Loop

log = logging.getLogger(__name__)


def metadata(
    trainer: Loop, ask_script: Callable[[Any], Mapping[str, Any]] | None, rotation: CheckpointRotation | None
) -> Callable[[], dict[str, Any]] | None:
    """Return what is asked at each save; None where nobody wants to say anything."""
    rated_by = rotation.keep_best[0] if rotation is not None and isinstance(rotation.keep_best, tuple) else None
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
