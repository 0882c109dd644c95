"""The training loop and its life cycle. It holds no algorithm: every step is a call of a part or of a hook."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.errors import FROM_OUTSIDE, EndOfData, EndOfEpoch, HookError, RlcoreError, named, note
from rlcore.loggers.metrics import Averages, Last
from rlcore.process import forks
from rlcore.process.signals import GraceExpired
from rlcore.restore.states import Restored, restore
from rlcore.state.snapshot import Snapshot
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import Saver
from rlcore.training.saving import Saving
from rlcore.types import MASK, BackgroundCollector, EvaluationResult, Evaluator
from rlcore.types.progress import ENDLESS, Every, Progress

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class Loop:
    """Collects, optimises, evaluates and saves until the run is done.

    `train()` runs to the end; `for progress in trainer:` hands over after each iteration.

    Attributes:
        progress: the clocks.
        stop_reason: why the run was asked to stop, or None.
        saving: saves checkpoints when their time has come.
    """

    def __init__(self, parts: TrainerParts) -> None:
        self.parts = parts
        self.run = parts.run
        self.progress = parts.progress
        self.model = parts.model
        self.buffer = parts.buffer
        self.learner = parts.learner
        self.metrics = parts.metrics
        self.hooks = parts.hooks
        self.transforms = parts.transforms
        self.estimator = parts.estimator
        self.evaluator = parts.evaluator
        self.stop_reason: str | None = None
        self.stop_at = parts.run.total_frames
        self.saving = Saving(parts, self.snapshot, self._checkpoint_saved, self._enter)
        self.seconds_trained = 0.0
        self._evaluate_every = _interval(parts.evaluator)
        self._batch: TensorDict | None = None
        self._enter("setup")
        self._clock = 0.0
        self._clock_frames = 0
        self._first_frame = 0
        self._closed = False
        self._ran_out = False

    def train(self) -> Progress:
        """Run until `total_frames` (or `stop_at`, or a stop request), and return the clocks."""
        for _ in self:
            pass
        return self.progress

    def request_stop(self, reason: str | None = None) -> None:
        """Ask the run to stop; the iteration is finished, every hook of it runs, the final checkpoint is saved."""
        self.stop_reason = self.stop_reason or reason or "a stop was requested"

    @property
    def collector(self) -> Any:
        """What collects the batches."""
        return self.parts.collector

    @property
    def saver(self) -> Saver | None:
        """What writes checkpoints; None for a run that writes nothing."""
        return self.saving.saver

    @property
    def batch(self) -> TensorDict | None:
        """The latest batch `[env, time]`; the next iteration may overwrite its tensors."""
        return self._batch

    @property
    def frames_here(self) -> int:
        """Frames that this process collected; after a resume, those since."""
        return self.progress.frames - self._first_frame

    @property
    def last_checkpoint(self) -> Path | None:
        """Folder of the latest checkpoint of this process."""
        return self.saver.last if self.saver is not None else None

    @property
    def last_evaluation(self) -> EvaluationResult | None:
        """The latest evaluation of the run."""
        return self.parts.evaluations.last

    @property
    def best_evaluation(self) -> EvaluationResult | None:
        """The evaluation with the highest mean return."""
        return self.parts.evaluations.best

    @property
    def done(self) -> bool:
        """Whether the loop would stop here."""
        return self.stop_reason is not None or self.progress.frames >= self.stop_at

    def __iter__(self) -> Iterator[Progress]:
        """Train; yield the clocks after each iteration."""
        if self._closed:
            raise RlcoreError("this trainer has run to its end and is closed; build another one to go on")
        left = False
        forks.guard(self.parts.heart)
        try:
            self.hooks.follow_changes()
            self.parts.check()
            self.hooks.setup(self)
            self._catch_up()
            self._begin()
            while not self.done:
                self.saving.keep_last_good()
                if self._iteration():
                    left = True
                    yield self.progress
                    left = False
            self._end()
        except GraceExpired as stopped:  # a stop that could not wait for the end of the iteration
            log.warning("%s; what was not finished is discarded", stopped)
            self.saving.what_stands(stopped, self._batch)
        except BaseException as error:
            if left:  # the caller left the loop
                raise
            self.parts.heart.beat()  # a forked copy of this process ends here
            note(error, f"while {self._phase}, iteration {self.progress.iterations}, frame {self.progress.frames}")
            self.hooks.on_exception(error, self)
            self.saving.what_stands(error, self._batch)
            raise
        finally:
            self._shutdown()

    def evaluate(self) -> EvaluationResult:
        """Evaluate the policy now.

        Raises:
            RuntimeError: the run has no evaluator.
        """
        if self.evaluator is None:
            raise RuntimeError("the run has no evaluator: add a section [evaluator] to the config")
        self._enter("evaluating")
        result = self.evaluator.evaluate()
        self.parts.evaluations.take(result)
        self.metrics.add({"return": result.returns_array(), "length": result.lengths_array()}, "evaluation/")
        self.hooks.evaluation(result, self)
        return result

    def save(self) -> Path | None:
        """Save a checkpoint now and return its folder; None for a run that writes nothing.

        Raises:
            NumericalError: a tensor of the model or an optimizer is not finite.
            StorageError: it cannot be written.
        """
        return self.saving.now()

    def snapshot(self) -> Snapshot:
        """Return the state of everything, which shares the tensors of the parts until it is `copied`."""
        return Snapshot.of(self.state_dict(), self.progress, self._evaluation_here())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of everything that has one, by component name."""
        self.metrics.drain()
        states = {}
        for name, component in self.parts.stateful.items():
            if hasattr(component, "state_dict"):
                kind = HookError if name.startswith("hook.") else RlcoreError
                with named(f"{name.replace('.', ' ')} in its state_dict", kind):
                    states[name] = component.state_dict()
        return states

    def load_state_dict(
        self, states: Mapping[str, Any], notes: Mapping[str, str] | None = None, **options: Any
    ) -> list[Restored]:
        """Restore everything that has state; return what became of each component. `options` are those of `restore`."""
        report = restore(self.parts.stateful, states, notes or {}, moved=self.parts.heart.beat, **options)
        follow = getattr(self.learner, "follow", None)
        if follow is not None and Restored("learner", "starts over") in report:  # else it has followed already
            follow()
        self._first_frame = self.progress.frames
        if self.saver is not None:
            self.saver.saved_at = self.progress.frames
        return report

    def optim_steps(self, batch: TensorDict | None) -> None:
        """Run the epochs of optimisation that follow a batch `[env, time]`, with their hooks."""
        hooks, learner, buffer = self.hooks, self.learner, self.buffer
        estimator = self.estimator
        averages = Averages() if hooks.used("post_optim_complete_log") else None
        updates = self.progress.updates
        hooks.pre_optim_steps(batch, self)
        if estimator is not None and estimator.every == "batch":
            estimator(batch)
        for _ in range(buffer.num_epochs):
            self.metrics.add(hooks.pre_epoch_log(batch, learner))
            epoch_batch = hooks.pre_epoch(batch, learner)
            if estimator is not None and estimator.every == "epoch":
                estimator(epoch_batch)
            self._epoch(epoch_batch, averages)
            self.metrics.add(hooks.post_epoch_log(epoch_batch, learner))
            hooks.post_epoch(epoch_batch, learner)
        learner.end_iteration()
        if averages is not None and self.progress.updates > updates:
            self.metrics.add(hooks.post_optim_complete_log(self.progress.updates, averages.means(), self))

    def _iteration(self) -> bool:
        """Run one iteration; return False when there was no more data for one."""
        began = time.monotonic()
        self.hooks.follow_changes()
        self._enter("collecting")
        try:
            batch = self.parts.collector.collect()
        except EndOfData:
            self.request_stop("the collector has no more batches")
            self._ran_out = self.run.total_frames == ENDLESS  # else it ended before its time
            return False
        self._enter("preparing the batch")
        steps = self._steps_of(batch)
        if batch is not None:
            for transform in self.transforms:
                batch = transform.batch(batch)
            batch = self.hooks.batch_process(batch, self)
        self._batch = batch
        self._count(steps)
        self.metrics.add(self.hooks.pre_steps_log(batch, self))
        self.buffer.add(batch)
        self._enter("optimising")
        if self.progress.frames >= self.buffer.warmup_frames:
            self.optim_steps(batch)
        self.progress.iterations += 1
        self.hooks.post_steps(batch, self)
        self.seconds_trained += time.monotonic() - began
        evaluated = self._evaluate_if_due()
        self._enter("logging")
        self.metrics.add(self.hooks.post_steps_log(batch, self))
        self._write_metrics(force=evaluated)
        self.parts.collector.update_model()
        self.saving.if_due(self._evaluation_here())
        return True

    def _epoch(self, batch: TensorDict | None, averages: Averages | None) -> None:
        """Take the optimisation steps of one epoch, until a hook ends it or nothing is left to draw."""
        learner, buffer, metrics, heart = self.learner, self.buffer, self.metrics, self.parts.heart
        prefix = self.parts.update_prefix
        for minibatch in buffer.minibatches(batch):
            heart.beats += 1
            try:
                values = learner.update(minibatch)
            except EndOfEpoch:
                break
            if prefix is not None:
                metrics.add(values, prefix)
            if averages is not None:
                averages.add(values)
            buffer.feedback(minibatch, values)

    def _steps_of(self, batch: TensorDict | None) -> int:
        """Return the valid steps that were collected; a collector in the background counts them itself."""
        if batch is None:
            assert isinstance(self.parts.collector, BackgroundCollector)
            return self.parts.collector.steps_written() - self.progress.frames // self.parts.frame_skip
        mask = batch.get(MASK, None)
        return batch.numel() if mask is None else int(mask.sum())

    def _count(self, steps: int) -> None:
        """Advance the clocks by the collected steps, and take in the episodes that finished."""
        self.progress.frames += steps * self.parts.frame_skip
        episodes = list(self.parts.collector.episodes())
        self.metrics.add(getattr(self.parts.collector, "metrics", dict)(), "collector/")
        self.metrics.extend("episode/return", [episode.return_ for episode in episodes])
        self.metrics.extend("episode/length", [episode.length for episode in episodes])
        for episode in episodes:
            self.progress.episodes += 1
            self.hooks.episode_end(episode, self)

    def _begin(self) -> None:
        """Save the beginning, so that a run can be resumed from its first moment on, and evaluate it, if asked."""
        self.saving.at_start()
        self.parts.begun()
        if self.progress.frames == 0 and self.evaluator is not None and self.evaluator.at_start:
            self.evaluate()
            self._write_metrics(force=True)
        self._clock, self._clock_frames = self.seconds_trained, self.progress.frames

    def _end(self) -> None:
        """At the end of the run evaluate and write what is left; at any stop, save.

        A run that stops earlier writes nothing, since an uninterrupted one would not: what came in is saved with it.
        """
        self.saving.acknowledge(wait=True)
        evaluated = False
        if self._ran_out or self.progress.frames >= self.run.total_frames:
            if self.evaluator is not None and self._evaluation_here() is None:
                self.evaluate()
                evaluated = True
            self._write_metrics(force=True)
        self.saving.at_end(news=evaluated)

    def _checkpoint_saved(self, path: Path) -> None:
        self.hooks.checkpoint_saved(path, self)

    def _enter(self, phase: str) -> None:
        """Note what the loop does now, for messages and for the watchdog."""
        self._phase = phase
        self.parts.heart.beats += 1

    def _evaluate_if_due(self) -> bool:
        if self._evaluate_every is None or not self._evaluate_every.due(self.progress):
            return False
        self.evaluate()
        return True

    def _evaluation_here(self) -> float | None:
        result = self.last_evaluation
        return result.mean_return if result is not None and result.frames == self.progress.frames else None

    def _write_metrics(self, force: bool) -> None:
        if not (self.metrics.every.due(self.progress) or force):
            return
        frames, seconds = self.progress.frames - self._clock_frames, self.seconds_trained - self._clock
        if frames:
            self.metrics.add({"frames_per_second": frames / seconds if seconds else 0.0}, "time/")
            self._clock, self._clock_frames = self.seconds_trained, self.progress.frames
            times = {hook.name: hook.seconds for hook in self.hooks.hooks if not hook.internal}
            self.metrics.add(times, "time/hooks/")
        if self.progress.frames != self.metrics.written_at:
            self.metrics.add(self.learner.scheduled(), "train/")
            clocks = {"updates": self.progress.updates, "episodes": self.progress.episodes}
            self.metrics.add({name: Last(value) for name, value in clocks.items()}, "progress/")
        self.metrics.write(self.progress)
        self.saving.check_place()

    def _catch_up(self) -> None:
        """After a resume, forget the intervals that passed before."""
        intervals = [self._evaluate_every, self.metrics.every]
        intervals += [self.parts.schedule.every] if self.parts.schedule else []
        for every in intervals:
            if every is not None:
                every.catch_up(self.progress)

    def _shutdown(self) -> None:
        try:
            self._close()
        finally:  # whatever interrupts it, the folder is free for the next
            forks.release(self.parts.heart)
            self.parts.release()

    def _close(self) -> None:
        self._closed = True
        self.parts.heart.beat()
        self.hooks.shutdown(self)
        self.parts.heart.beat()
        closing = {"saver": self.saver, "collector": self.parts.collector, "evaluator": self.evaluator}
        for name, close in {**closing, "metrics": self.metrics}.items():
            self.parts.heart.beats += 1
            try:
                if close is not None:
                    close.close()
            except FROM_OUTSIDE:
                raise
            except BaseException:  # an exit too: the run has ended as it has
                log.exception("closing the %s failed", name)


def _interval(evaluator: Evaluator | None) -> Every | None:
    return Every(evaluator.every) if evaluator is not None and evaluator.every is not None else None
