"""The training loop, in the order in which it runs. It holds no algorithm: every step is a call of a part or a hook."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlcore.errors import EndOfData, EndOfEpoch, MissingStateError, RlcoreError, note
from rlcore.loggers.statistics import Averages
from rlcore.process import forks
from rlcore.process.signals import GraceExpired
from rlcore.training.batch_form import BatchForm
from rlcore.training.checks import check_intervals
from rlcore.training.interface import TrainerInterface
from rlcore.training.lockstep import Collected
from rlcore.training.parts import TrainerParts, close_parts
from rlcore.types import Buffer, Collector, Episode, Learner
from rlcore.types.overrides import is_overridden
from rlcore.types.part import with_defaults
from rlcore.types.progress import ENDLESS, Every, Progress
from rlcore.types.records import MASK

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class Loop(TrainerInterface):
    """Collects, optimises, evaluates and saves until the run is done.

    `train()` runs to the end; `for progress in trainer:` hands over after each iteration.
    What hooks and scripts may read, ask and tell is in `interface.py`.
    """

    def __init__(self, parts: TrainerParts) -> None:
        super().__init__(parts)
        if self._lockstep.together:
            parts.hooks.end_epochs_together(self._lockstep.vote)
        every = None if parts.evaluator is None else parts.evaluator.every
        self._evaluate_every = None if every is None else Every(every)
        self._collects = with_defaults(parts.collector, Collector).batch_steps != 0
        if not self._collects:
            check_intervals(self._intervals())
            of_epoch = with_defaults(parts.buffer, Buffer).most_updates(0)
            if of_epoch is not None:
                parts.progress.updates_per_iteration = max(1, parts.buffer.num_epochs * of_epoch)
        self._form = BatchForm(parts, own_steps=is_overridden(self, "optim_steps"))
        self._over = False  # whether the run reached its end, rather than a stop
        self._closed = False
        parts.hooks.asked = self._asked

    def train(self) -> Progress:
        """Run to the end of its clock (or `stop_at`, or a stop request), and return the clocks.

        A run that is at its end stays as it is.
        """
        for _ in self:
            pass
        return self.parts.progress

    def __iter__(self) -> Iterator[Progress]:
        """Train; yield the clocks after each iteration.

        Raises:
            StorageError: the checkpoint has state of a module that was not registered since.
            RlcoreError: it was stopped before its end, and its parts are closed.
        """
        if waiting := self.carried.waiting:
            raise MissingStateError(
                f"the checkpoint has state of {', '.join(waiting)}, which a script registered as a module; "
                "register it before training, or leave the state out with drop"
            )
        if self._closed and self._over:
            return
        if self._closed:
            raise RlcoreError("this trainer was stopped and is closed; resume its run, or build another one, to go on")
        handed_over = False
        forks.guard(self.parts.heart)
        try:
            self._begin()
            while not self.done:
                if self._lockstep.keeps(self.saving.last_good_due(self.parts.progress.now)):
                    self.saving.keep_last_good()
                if self._iteration():
                    handed_over = True
                    yield self.parts.progress
                    handed_over = False
            self._end()
        except GraceExpired as stopped:  # a stop that could not wait for the end of the iteration
            log.error("%s; what was not finished is discarded", stopped)  # also to who wants quiet
            self.saving.what_stands(stopped, self.batch)
        except BaseException as error:
            if handed_over:  # the caller left the loop, or failed
                raise
            self.parts.heart.beat()  # a forked copy of this process ends here
            note(
                error,
                f"while {self._phase}, iteration {self.parts.progress.iterations}, "
                f"{self.parts.progress.unit} {self.parts.progress.now}",
            )
            self.parts.hooks.on_exception(error, self)
            self.saving.what_stands(error, self.batch)
            raise
        finally:
            self._shutdown()

    def _begin(self) -> None:
        """Set up, save the beginning, so that a run can be resumed from there, and evaluate it if asked."""
        parts = self.parts
        parts.hooks.follow_changes()
        parts.check()
        parts.hooks.setup(self)
        for every in self._intervals():
            every.catch_up(parts.progress)  # what was due before a resume was done then
        self.saving.at_start()
        parts.begun()
        begins = parts.progress.now == 0 and self._evaluation_here() is None  # and no state that was kept after it
        evaluated = begins and parts.evaluator is not None and parts.evaluator.at_start
        if evaluated:
            self.evaluate()
        if self._lockstep.first_says(evaluated, parts.progress.now):
            self._write_metrics(force=True)
        self._rows.begin()

    def _iteration(self) -> bool:
        """Run one iteration; return False when there was no more data for one."""
        began = time.monotonic()
        self.parts.hooks.follow_changes()
        if not self._collect():
            return False
        self._learn()
        self._rows.seconds_trained += time.monotonic() - began
        evaluated = self._evaluate_if_due()
        self._end_iteration(evaluated)
        self.parts.collector.update_model()
        self._save()
        return True

    def _collect(self) -> bool:
        """Take the next batch, as transforms and hooks make it, and count it; return False where there is none."""
        parts = self.parts
        self._enter("collecting")
        try:
            batch = self._form.collect()
        except EndOfData:
            self._agree(out_of_data=True)
            return False
        self._enter("preparing the batch")
        steps, episodes = self._steps_of(batch), list(parts.collector.episodes())
        together = self._agree(steps, len(episodes))
        if together.out_of_data:
            return False
        if batch is not None:
            for transform in parts.transforms:
                batch = transform.batch(batch)
            batch = self._process_batch_hook(batch)
        self._batch = batch
        self._count(together, episodes)
        return True

    def _process_batch_hook(self, batch: TensorDict) -> Any:
        """Return a batch as the hooks make it."""
        return self.parts.hooks.batch_process(batch, self)

    def _learn(self) -> None:
        """Hand the batch to the buffer, and take the optimisation steps that follow once it is warm."""
        parts, hooks, batch = self.parts, self.parts.hooks, self._batch
        self._record(hooks.pre_steps_log(batch, self))
        batch = self._batch  # a TensorDict now, where a hook asked the trainer for it and may have changed it
        parts.buffer.add(batch)
        self._enter("optimising")
        if parts.progress.frames >= parts.buffer.warmup_frames:
            self.optim_steps(batch)
        else:
            with_defaults(parts.learner, Learner).follow()
        parts.progress.iterations += not parts.progress.unfinished
        hooks.post_steps(batch, self)

    def _end_iteration(self, evaluated: bool) -> None:
        """Take in what the hooks have to log, and write a row of metrics where one is due or the run was evaluated."""
        self._enter("logging")
        self._record(self.parts.hooks.post_steps_log(self._batch, self))
        self._write_metrics(force=evaluated)

    def _record(self, values: Mapping[str, Any], prefix: str = "") -> None:
        """Take in what hooks have to log, or the values of an update."""
        self.parts.metrics.add(values, prefix)

    def _steps_of(self, batch: TensorDict | None) -> int:
        """Return the valid steps that were collected; a collector in the background counts them itself."""
        if batch is None:
            return self.parts.collector.steps_written() - self.parts.progress.frames // self.parts.frame_skip
        mask = batch.get(MASK, None)
        return batch.numel() if mask is None else int(mask.sum())

    def _agree(self, steps: int = 0, episodes: int = 0, out_of_data: bool = False) -> Collected:
        """Return what the processes that train together collected, and follow those that end."""
        now = self.parts.progress.after(steps * self.parts.frame_skip)
        keep = self._lockstep.together and self.saving.last_good_due(now)  # alone, the loop asks when it is there
        own = Collected(steps, episodes, out_of_data, self.stop_reason is not None, self.stop_at, keep)
        together = self._lockstep.agree(own)
        if together.out_of_data:
            self.request_stop("the collector has no more batches")
            self._over = self.parts.progress.total == ENDLESS  # else it ended before its time
        elif together.stop:
            self.request_stop("another process of the group was asked to stop")
        return together

    def _count(self, together: Collected, episodes: Sequence[Episode]) -> None:
        """Advance the clocks by what was collected, and tell of the episodes that ended in this process."""
        progress = self.parts.progress
        progress.frames += together.steps * self.parts.frame_skip
        self._rows.add_collected(episodes)
        for episode in episodes:
            progress.episodes += 1
            self.parts.hooks.episode_end(episode, self)
        progress.episodes += together.episodes - len(episodes)

    def optim_steps(self, batch: TensorDict | None) -> None:
        """Run the epochs of optimisation that follow a batch `[env, time]`, with their hooks."""
        parts, hooks, learner = self.parts, self.parts.hooks, self.parts.learner
        estimator = parts.estimator
        averages = Averages() if hooks.used("post_optim_complete_log") else None
        updates = parts.progress.updates
        hooks.pre_optim_steps(batch, self)
        if estimator is not None and estimator.every == "batch":
            estimator(batch)
        for _ in range(parts.buffer.num_epochs):
            self._record(hooks.pre_epoch_log(batch, learner))
            epoch_batch = hooks.pre_epoch(batch, learner)
            if estimator is not None and estimator.every == "epoch":
                estimator(epoch_batch)
            self._updates(epoch_batch, averages)
            self._record(hooks.post_epoch_log(epoch_batch, learner))
            hooks.post_epoch(epoch_batch, learner)
        learner.end_iteration()
        if averages is not None and parts.progress.updates > updates:
            self._record(hooks.post_optim_complete_log(parts.progress.updates, averages.means(), self))

    def _updates(self, batch: TensorDict | None, averages: Averages | None) -> None:
        """Take the optimisation steps of one epoch, until a hook ends it or nothing is left to sample."""
        parts = self.parts
        learner, buffer, record = parts.learner, parts.buffer, self._record
        heart, prefix = parts.heart, parts.update_prefix
        for minibatch in islice(buffer.minibatches(batch), self._most_updates()):
            heart.beats += 1
            try:
                values = learner.update(minibatch)
            except EndOfEpoch:
                break
            if prefix is not None:
                record(values, prefix)
            if averages is not None:
                averages.add(values)
            buffer.feedback(minibatch, values)

    def _most_updates(self) -> int | None:
        """Return how many updates may come before something is due; None where the collected batch decides."""
        if self._collects:
            return None
        progress = self.parts.progress
        ends = [every.next(progress) for every in self._intervals() if every.clock != "iterations"]
        if progress.unfinished:
            ends.append(progress.between_iterations().updates + progress.updates_per_iteration)
        return min(self.stop_at, *ends) - progress.updates

    def _intervals(self) -> list[Every]:
        """Return when the run is evaluated, metrics are written and checkpoints saved."""
        saving = None if self.parts.schedule is None else self.parts.schedule.every
        return [every for every in (self._evaluate_every, self.parts.metrics.every, saving) if every is not None]

    def _asked(self, frames: int) -> bool:
        """Return whether this iteration ends with a row of metrics, an evaluation or a checkpoint, or in hooks.

        Args:
            frames: that it has collected and not counted yet.
        """
        progress = self.parts.progress
        end = replace(progress, frames=progress.frames + frames, iterations=progress.iterations + 1)
        # how many updates come cannot be said before them
        due = any((every.clock or progress.clock) == "updates" or every.passed(end) for every in self._intervals())
        stops = self.stop_reason is not None or end.now >= self.stop_at
        return due or stops or self.parts.hooks.used("episode_end")

    def _evaluate_if_due(self) -> bool:
        """Evaluate where it is due; return whether the first of the processes that train together did."""
        progress, every = self.parts.progress, self._evaluate_every
        due = every is not None and every.due(progress)
        if due:
            self.evaluate()
        return self._lockstep.first_says(due, progress.now)

    def _write_metrics(self, force: bool) -> None:
        if self._rows.write(force):
            self.saving.check_place()

    def _end(self) -> None:
        """At the end of the run evaluate; at any stop, write what is left and save.

        A run that stops earlier writes after it has saved: a resume takes that row back, since a run without a stop has
        none there.
        """
        self.saving.acknowledge(wait=True)
        self._over = self._over or self.parts.progress.now >= self.parts.progress.total
        evaluates = self._over and self.parts.evaluator is not None and self._evaluation_here() is None
        if evaluates:
            self.evaluate()
        if self._over:
            self._write_metrics(force=True)
        self._save(at_end=True, news=evaluates)
        if not self._over:
            self._write_metrics(force=True)

    def _save(self, at_end: bool = False, news: bool = False) -> None:
        """Save where it is due, or at the end of the run, where `news` says whether it was evaluated since."""
        if at_end:
            self.saving.at_end(news)
        else:
            self.saving.if_due(self._evaluation_here())

    def shutdown(self) -> None:
        """Close the collector and the loggers, as the end of `train` does; again is nothing."""
        if not self._closed:
            self._shutdown()

    def _shutdown(self) -> None:
        """Close everything; whatever interrupts that, the folder is free for the next run."""
        self._closed = True
        heart = self.parts.heart
        try:
            heart.beat()
            self.parts.hooks.shutdown(self)
            heart.beat()
            close_parts(self.parts, self.saver)
        finally:
            forks.release(heart)
            self.parts.release()
