"""The trainer as hooks and scripts see it: what they may read, ask and tell, and the state that checkpoints carry.

`rlcore.types.trainer.Trainer` promises it to hooks. What happens in which order is in `loop.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.restore.components import Restored, restore
from rlcore.state.snapshot import Snapshot
from rlcore.training.attributes import PartAttributes
from rlcore.training.lockstep import Lockstep
from rlcore.training.lost import lost
from rlcore.training.metric_rows import MetricRows
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import Saver
from rlcore.training.saving import Saving
from rlcore.training.stateful import states_of
from rlcore.types import CollectedBatch, EvaluationResult
from rlcore.types.optional import Follower, offers

if TYPE_CHECKING:
    from tensordict import TensorDict


class TrainerInterface(PartAttributes):
    """What hooks and scripts may do with a trainer besides having it train.

    Args:
        parts: what it runs; hooks and scripts see them as attributes.

    Attributes:
        stop_reason: why the run was asked to stop, or None.
        stop_at: where it stops, on the clock of the run; its horizon unless it is told otherwise.
        saving: saves checkpoints when their time has come.
    """

    def __init__(self, parts: TrainerParts) -> None:
        self.parts = parts
        self.stop_reason: str | None = None
        self.stop_at = parts.progress.total
        self.saving = Saving(parts, self.snapshot, self._checkpoint_saved, self._enter)
        self._rows = MetricRows(parts)
        self._lockstep = Lockstep(parts.group)
        self._batch: Any = None
        self._first_frame = self._first_now = 0
        self._enter("setup")

    def request_stop(self, reason: str | None = None) -> None:
        """Ask the run to stop; the iteration is finished, every hook of it runs, the final checkpoint is saved."""
        self.stop_reason = self.stop_reason or reason or "a stop was requested"

    @property
    def done(self) -> bool:
        """Whether the loop would stop here."""
        return self._lockstep.ends(self.parts.progress.now, self.stop_reason is not None, self.stop_at)

    @property
    def batch(self) -> TensorDict | None:
        """The latest batch `[env, time]`; the next iteration may overwrite its tensors."""
        if isinstance(self._batch, CollectedBatch):
            self._batch = self._batch.to_tensordict()
        return self._batch

    @property
    def seconds_trained(self) -> float:
        """Seconds spent collecting and optimising in this process."""
        return self._rows.seconds_trained

    @property
    def frames_here(self) -> int:
        """Frames that this process collected; after a resume, those since."""
        return self.parts.progress.frames - self._first_frame

    @property
    def done_here(self) -> int:
        """How far this process took the run, on its clock; after a resume, since."""
        return self.parts.progress.now - self._first_now

    def evaluate(self) -> EvaluationResult:
        """Evaluate the policy now.

        Raises:
            RuntimeError: the run has no evaluator.
        """
        parts = self.parts
        if parts.evaluator is None:
            raise RuntimeError("the run has no evaluator: add a section [evaluator] to the config")
        self._enter("evaluating")
        result = parts.evaluator.evaluate()
        parts.evaluations.take(result, trained=parts.progress.updates > 0)
        parts.metrics.add({"return": result.returns_array(), "length": result.lengths_array()}, "evaluation/")
        for policy, returns in result.returns_by_policy().items():
            parts.metrics.extend(f"evaluation/return/{policy}", returns)
        parts.hooks.evaluation(result, self)
        return result

    @property
    def last_evaluation(self) -> EvaluationResult | None:
        """The latest evaluation of the run."""
        return self.parts.evaluations.last

    @property
    def best_evaluation(self) -> EvaluationResult | None:
        """The evaluation with the highest mean return, of those after the first update."""
        return self.parts.evaluations.best

    def save(self) -> Path | None:
        """Save a checkpoint now and return its folder; None for a run that writes nothing.

        Raises:
            NumericalError: a tensor of the model or an optimizer is not finite.
            StorageError: it cannot be written.
        """
        return self.saving.now()

    @property
    def saver(self) -> Saver | None:
        """What writes checkpoints; None for a run that writes nothing."""
        return self.saving.saver

    @property
    def last_checkpoint(self) -> Path | None:
        """Folder of the latest checkpoint of this process."""
        return self.saver.last if self.saver is not None else None

    @property
    def why_inexact(self) -> tuple[str, ...]:
        """Why a resume from here would not give the bits of an uninterrupted run; empty where it would."""
        return self.parts.provenance.inexact

    def lost(self) -> dict[str, int]:
        """Return what the run lost without ending, by cause: episodes, updates, checkpoints, rows of logs."""
        return lost(self.parts, self.saver)

    def snapshot(self) -> Snapshot:
        """Return the state of everything, which shares the tensors of the parts until it is `copied`."""
        return Snapshot.of(self.state_dict(), self.parts.progress, self._evaluation_here())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of everything that has one, by component name."""
        self.parts.metrics.drain()
        return states_of(self.parts.stateful)

    def load_state_dict(
        self, states: Mapping[str, Any], notes: Mapping[str, str] | None = None, **options: Any
    ) -> list[Restored]:
        """Restore everything that has state; return what became of each component. `options` are those of `restore`."""
        parts = self.parts
        report = restore(parts.stateful, states, notes or {}, moved=parts.heart.beat, **options)
        if offers(parts.learner, Follower) and any(map(_learner_starts_over, report)):
            parts.learner.follow()  # one that was restored has followed already
        self._first_frame, self._first_now = parts.progress.frames, parts.progress.now
        if self.saver is not None:
            self.saver.saved_at = parts.progress.now
        return report

    def _evaluation_here(self) -> float | None:
        """Return the mean return of the evaluation that was made here, if there was one."""
        result = self.last_evaluation
        return result.mean_return if result is not None and result.frames == self.parts.progress.now else None

    def _checkpoint_saved(self, path: Path) -> None:
        self.parts.hooks.checkpoint_saved(path, self)

    def _enter(self, phase: str) -> None:
        """Note what the loop does now, for messages and for the watchdog."""
        self._phase = phase
        self.parts.heart.beats += 1


def _learner_starts_over(line: Restored) -> bool:
    return line.outcome == "starts over" and line.name.partition(".")[0] == "learner"
