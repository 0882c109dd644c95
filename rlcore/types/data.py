"""What collectors, buffers and evaluators are, and what they may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlcore.types.part import Part

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.collected import CollectedBatch
    from rlcore.types.records import EnvSpec, Episode, EvaluationResult, Key


class Collector(Part, ABC):
    """Fills batches with experience.

    It is called in the process and thread that trains, and may have workers of its own. It takes its envs, transforms
    and policy from `context`, refreshes the policy before each batch, and saves the running episodes with the state of
    the envs (`Stateful`).

    A collector that defines `steps_written` works in the background: it fills a replay buffer while the learner works,
    and its `collect` returns None.

    Attributes:
        batch_steps: steps in a batch, over all envs; None where batches have no one size.
        batch_envs: how many envs a batch has; None for those of all. Where they are fewer than those of the run, the
            next batch may have others.
        dropped_episodes: how many running episodes it could not go on with, over all resumes of the run and workers
            that were replaced; a part of its state.
        replaced_workers: how many worker processes were replaced, since they ended or hung, since this process began.

    Called in `rlcore/training/batch_form.py`:

        return collector.collect()

    Called in `rlcore/training/loop.py`:

        self.parts.collector.update_model()
        ...
        steps, episodes = self._steps_of(batch), list(parts.collector.episodes())
        ...
        return self.parts.collector.steps_written() - self.parts.progress.frames // self.parts.frame_skip
    """

    batch_steps: int | None = None
    batch_envs: int | None = None
    dropped_episodes: int = 0
    replaced_workers: int = 0

    @abstractmethod
    def collect(self) -> TensorDict:
        """Return the next batch; called once per iteration. The first call resets the envs.

        Returns:
            `[env, time]` on the run's device, with the entries that `rlcore.types` lists. The TensorDict is new: the
            loop and the hooks set entries. Its tensors may be views of storage that the following call overwrites.

        Raises:
            EnvError: an env failed, or an observation or reward is not finite; nothing of the batch is handed on.
            EndOfData: there are no more batches; the run ends as if it had been asked to stop.
        """

    def episodes(self) -> Iterable[Episode]:
        """Return the episodes that ended in the last batch, in the order in which they ended; called once per batch."""
        return ()

    def update_model(self) -> None:
        """Use the weights that the learner has now; called at the end of each iteration.

        Nothing to do for a collector whose policy reads the weights of the model itself.
        """

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors, as `collect` would; called in place of it where all parts take those.

        A class that overrides `collect` alone has that called.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method collect_columns")

    def steps_written(self) -> int:
        """Return how many steps it has written so far, those before a resume too; called once per iteration."""
        raise NotImplementedError(f"{type(self).__name__} has no method steps_written")

    def metrics(self) -> Mapping[str, float]:
        """Return figures of the last batch by name; logged with `collector/` before each name."""
        return {}

    def set_seed(self, seed: int) -> int:
        """Seed everything random in it, where it was made outside of a run; return the seed for what comes after it."""
        return seed


class Buffer(Part, ABC):
    """Turns batches into minibatches.

    It is called in the process and thread that trains. One that keeps transitions or samples at random has a state
    (`Stateful`), and takes its generator from `context.generator()`.

    Attributes:
        num_epochs: passes of optimisation per iteration.
        warmup_frames: frames to collect before the first one.
        has_data: whether it has data of its own, so that a run with it needs no collector.

    Called in `rlcore/training/loop.py`:

        parts.buffer.add(batch)
        ...
        if parts.progress.frames >= parts.buffer.warmup_frames:
        ...
        for _ in range(parts.buffer.num_epochs):
        ...
        for minibatch in islice(buffer.minibatches(batch), self._most_updates()):
            heart.beats += 1
            try:
                values = learner.update(minibatch)
            ...
            buffer.feedback(minibatch, values)
    """

    num_epochs: int
    warmup_frames: int
    has_data: bool = False

    @classmethod
    def spec_of(cls, config: Any, context: Any) -> EnvSpec:  # its class imports this file
        """Return the spec of one env from which its data come, so that a run may do without an env.

        Called before any part is built.

        Args:
            config: the validated section of the buffer.
            context: the `Context` of the run.

        Raises:
            ConfigError: the data cannot be read, or do not say.
        """
        raise NotImplementedError(f"{cls.__name__} has no method spec_of")

    def most_updates(self, batch_steps: int) -> int | None:
        """Return how many minibatches an epoch has at most, after a batch of so many steps of this process.

        None where it does not know. Else what would never come round is refused before the first frame, such as an
        optimizer with an `every` above all updates of the run.
        """
        return None

    @abstractmethod
    def add(self, batch: TensorDict) -> None:
        """Take a batch in; called once per iteration, before its epochs.

        Args:
            batch: `[env, time]` as the hooks left it; where `takes_columns` is True, perhaps a `CollectedBatch`, here
                and in `minibatches`, since a TensorDict costs more than a row. Its tensors are overwritten in the next
                iteration: what is kept beyond this one is copied. Steps whose mask is False are not trained on.
        """

    @abstractmethod
    def minibatches(self, batch: TensorDict) -> Iterator[Mapping[Key, Tensor]]:
        """Yield the minibatches of one epoch; called once per epoch.

        Args:
            batch: `[env, time]` of this epoch, with what hooks and the estimator wrote. An on-policy buffer samples
                from it, a replay buffer from what it has kept.

        Yields:
            Entries `[sample, ...]` by key, on the run's device, such as a `rlcore.Minibatch`; of one size, so that a
            compiled update sees one shape. Valid until the next one is asked for. Of several processes that train
            together each yields as many: the most that one of them has, by `context.group.share`. One with fewer
            repeats rows, and one without any yields minibatches without rows, which `feedback` gets too.
        """

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Hear the result of the update with a minibatch, for example to set priorities; called after each update.

        Args:
            minibatch: the one that was yielded.
            values: what the update returned, on the device; `td_error` `[sample, 1]` where the loss gives one. Not to
                be changed.
        """


class Evaluator(Part, ABC):
    """Measures the policy without training on what it sees.

    It is called in the process and thread that trains, and the loop waits for it. Envs, frozen transforms and
    generators are its own: training goes on as it would without it, to the bit. Equal weights give equal results.

    Attributes:
        every: the interval in frames, or `{clock: count}`; None for an evaluation at the end only.
        at_start: whether to evaluate before the first frame.

    Called in `rlcore/training/interface.py`:

        result = parts.evaluator.evaluate()
        parts.evaluations.take(result, trained=parts.progress.updates > 0)
    """

    every: int | Mapping[str, int] | None
    at_start: bool

    @abstractmethod
    def evaluate(self) -> EvaluationResult:
        """Run complete episodes of the deterministic policy with the weights of now, and return them.

        The loop logs their returns and lengths under `evaluation/`, and tells the hooks. An evaluator counts on
        `context.heart.beats` while it works, so that a watchdog sees that it moves.

        Raises:
            EnvError: an env failed.
        """
