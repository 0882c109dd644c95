"""The interfaces of what gives data: collectors, buffers and evaluators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.records import Episode, EvaluationResult, Key


class Collector(Protocol):
    """Fills batches with experience.

    A method `metrics() -> Mapping[str, float]`, where there is one, gives figures of the last batch to log.

    Attributes:
        batch_steps: steps in a batch, over all envs.
    """

    batch_steps: int

    def collect(self) -> TensorDict:
        """Return the next batch `[env, time]`. Its tensors may be reused by the following call."""
        ...

    def episodes(self) -> Iterable[Episode]:
        """Return the episodes that ended in the last batch."""
        ...

    def update_model(self) -> None:
        """Use the weights that the learner has now."""
        ...

    def close(self) -> None:
        """Release envs and workers."""
        ...


@runtime_checkable
class BackgroundCollector(Protocol):
    """A collector that fills a replay buffer while the learner works; its `collect` returns None."""

    def steps_written(self) -> int:
        """Return how many steps it has written so far."""
        ...


class Buffer(Protocol):
    """Turns batches into minibatches.

    Attributes:
        num_epochs: passes of optimisation per iteration.
        warmup_frames: frames to collect before the first one.
    """

    num_epochs: int
    warmup_frames: int

    def add(self, batch: TensorDict) -> None:
        """Take a batch in. What is kept beyond this iteration is copied."""
        ...

    def minibatches(self, batch: TensorDict) -> Iterator[Mapping[Key, Tensor]]:
        """Yield the minibatches `[sample]` of one epoch; an on-policy buffer draws them from `batch`."""
        ...

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Hear the result of the update with `minibatch`, for example to set priorities."""
        ...


class Evaluator(Protocol):
    """Measures the policy without training on what it sees.

    Attributes:
        every: the interval, `None` for never.
        at_start: whether to evaluate before the first frame.
    """

    every: int | Mapping[str, int] | None
    at_start: bool

    def evaluate(self) -> EvaluationResult:
        """Run the episodes and return them."""
        ...

    def close(self) -> None:
        """Release the envs."""
        ...
