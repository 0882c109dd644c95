"""In which form batches go through the loop: as TensorDicts, or as their tensors where nobody needs more."""

from __future__ import annotations

from typing import Any

from rlcore.training.overrides import speaks_for
from rlcore.training.parts import TrainerParts
from rlcore.types import Collector
from rlcore.types.collected import takes_columns
from rlcore.types.part import defines


class BatchForm:
    """Asks the collector for batches in the form that the others in the loop take.

    A script may exchange a part between two iterations, so what depends on one is asked again when it is another.

    Args:
        parts: of the trainer.
        own_steps: whether the epochs are run by a method of a script's own, which takes TensorDicts.
    """

    def __init__(self, parts: TrainerParts, own_steps: bool) -> None:
        self._parts = parts
        self._own_steps = own_steps
        self._sources: tuple[Any, Any] = (None, None)
        self._fits = False

    def collect(self) -> Any:
        """Return the next batch `[env, time]`, a TensorDict or a `CollectedBatch`; None from one in the background.

        Raises:
            EndOfData: there is none.
        """
        parts = self._parts
        collector, buffer = parts.collector, parts.buffer
        if collector is not self._sources[0] or buffer is not self._sources[1]:
            self._sources = collector, buffer
            has_columns = defines(collector, Collector.collect_columns)
            gives_columns = has_columns and speaks_for(collector, "collect_columns", "collect")
            self._fits = not self._own_steps and gives_columns and takes_columns(buffer)
        needed = parts.transforms or parts.estimator is not None or parts.hooks.need_tensordicts
        if not self._fits or needed or "collect" in vars(collector):  # a script may have put its own there
            return collector.collect()
        return collector.collect_columns()
