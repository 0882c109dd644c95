"""What a trainer runs, gathered in one record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.errors import FROM_OUTSIDE
from rlcore.hooks.points import LoopHooks
from rlcore.loggers.metrics import Metrics
from rlcore.training.evaluations import Evaluations
from rlcore.training.saver import Saver
from rlcore.training.schedule import SaveSchedule
from rlcore.types import Buffer, Collector, Estimator, Evaluator, Learner, RunInfo, Transform
from rlcore.types.group import Alone, Group
from rlcore.types.heart import Heart
from rlcore.types.part import Part, with_defaults
from rlcore.types.progress import Progress

log = logging.getLogger(__name__)


@dataclass
class TrainerParts:
    """What a trainer runs.

    Attributes:
        stateful: what takes part in checkpoints, by component name, in the order of restoring.
        provenance: what the manifest of a checkpoint says besides.
        evaluations: the latest and the best.
        fault_store: where batches that were not finite go.
        heart: counts what moves, for the watchdog.
        group: the processes that train together.
        update_prefix: before the names of what an update returns; None to leave that out of the metrics.
        policies: of several policies, the name of that of each agent of a game, in the order of the envs; else empty.
        check: called before the first frame; refuses what cannot train.
        begun: called once the run stands as it was asked for: built, restored and, where that is needed, saved.
        release: gives the run folder free.
    """

    run: RunInfo
    progress: Progress
    model: Any
    collector: Collector
    buffer: Buffer
    learner: Learner
    metrics: Metrics
    hooks: LoopHooks
    transforms: list[Transform] = field(default_factory=list)
    estimator: Estimator | None = None
    evaluator: Evaluator | None = None
    store: Store | None = None
    fault_store: Store | None = None
    schedule: SaveSchedule | None = None
    frame_skip: int = 1
    update_prefix: str | None = "train/"
    heart: Heart = field(default_factory=Heart)
    group: Group = field(default_factory=Alone)
    stateful: dict[str, Any] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    evaluations: Evaluations = field(default_factory=Evaluations)
    policies: tuple[str, ...] = ()
    check: Callable[[], None] = lambda: None
    begun: Callable[[], None] = lambda: None
    release: Callable[[], None] = lambda: None

    def saver(self) -> Saver | None:
        """Return what saves checkpoints; None for a run that writes nothing."""
        if self.store is None or self.schedule is None or self.fault_store is None:
            return None
        return Saver(self.store, self.schedule, self.fault_store, self._log_files, self.heart)

    def _log_files(self) -> list[Path]:
        """Return the files of the past that a checkpoint counts on."""
        return [*self.evaluations.files(), *(file for writer in self.metrics.writers for file in writer.files)]


def close_parts(parts: TrainerParts, saver: Saver | None) -> None:
    """Close what must be closed at the end of a run; what fails at that is reported, and the others are closed."""
    closing = {"saver": saver, "collector": parts.collector, "evaluator": parts.evaluator, "metrics": parts.metrics}
    for name, part in {**closing, "learner": parts.learner}.items():
        parts.heart.beats += 1
        try:
            with_defaults(part, Part).close()
        except FROM_OUTSIDE:
            raise
        except BaseException:  # an exit too: the run has ended as it has
            log.exception("closing the %s failed", name)
