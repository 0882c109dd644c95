"""What a run lost: episodes, updates, checkpoints, numbers and rows of logs that went missing without ending it."""

from __future__ import annotations

from rlcore.training.parts import TrainerParts
from rlcore.training.saver import Saver
from rlcore.types import Collector
from rlcore.types.learning import Learner
from rlcore.types.part import with_defaults


def lost(parts: TrainerParts, saver: Saver | None) -> dict[str, int]:
    """Return how much a run lost, by cause; causes without a loss are left out."""
    collector, learner, metrics = parts.collector, parts.learner, parts.metrics
    counts = {
        "episodes dropped": with_defaults(collector, Collector).dropped_episodes,
        "workers replaced": with_defaults(collector, Collector).replaced_workers,
        "updates skipped as not finite": with_defaults(learner, Learner).skipped_updates,
        "checkpoints not written": saver.failed if saver is not None else 0,
        "metrics that were not finite": metrics.not_finite,
        "metrics left out beyond the most names": metrics.left_out,
        **{f"failures of logger {writer.name}": writer.failures for writer in metrics.writers},
        "changes of evaluations.csv by others": parts.evaluations.differences,
        **{f"changes of the files of logger {writer.name} by others": writer.differences for writer in metrics.writers},
        **{f"writes left out by logger {writer.name}": writer.left_out for writer in metrics.writers},
    }
    return {cause: count for cause, count in counts.items() if count}
