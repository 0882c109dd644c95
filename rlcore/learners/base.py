"""The frame of an update: the points around it, the count, what is random in it; what it does is a learner's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from rlcore.errors import EndOfEpoch
from rlcore.types import Alone, Context, Group, Key
from rlcore.types.optional import NoiseSampler, offers
from rlcore.types.progress import Progress
from rlcore.types.trainer import InnerPoints

if TYPE_CHECKING:
    from torch import Tensor


class Updating(ABC):
    """A learner that takes its steps in this process.

    Attributes:
        progress: the clocks of the run.
        group: the processes that train together.
        rows: samples of this process in the update, where several train together; 0 joins the others with nothing.
    """

    def __init__(self, hooks: InnerPoints, progress: Progress, group: Group | None = None) -> None:
        self.progress = progress
        self.group: Group = group or Alone()
        self.rows = 0
        self._hooks = hooks

    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step and return its metrics with what `post_optim_log` adds.

        Raises:
            EndOfEpoch: a hook says that there is nothing more to sample.
        """
        hooks = self._hooks
        minibatch = hooks.process_optim_batch(minibatch, self)
        if minibatch is None:
            raise EndOfEpoch
        metrics = self.take_step(minibatch)
        self.progress.updates += 1
        hooks.post_optim(minibatch, self)
        return hooks.post_optim_log(metrics, minibatch, self)

    @abstractmethod
    def take_step(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Change the parameters once, and return metrics, 0-d tensors on the device."""

    @abstractmethod
    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, for logging."""

    @abstractmethod
    def end_iteration(self) -> None:
        """Finish the epochs of an iteration."""


class LossNoise:
    """Samples what is random in a loss, once for each update.

    Alone, the samples come from one generator. In a group, each rank has other rows and needs other noise, yet the
    state of a learner is the same on all: there the generator only gives each update a seed, the same on all ranks,
    from which and its number a rank seeds the generator that it samples from.

    Args:
        sample: `sample_noise` of the loss.
        context: of the learner.
    """

    def __init__(self, sample: Callable[[int, torch.Generator], Tensor], context: Context) -> None:
        self._sample = sample
        self._rank = context.group.rank
        self._generator = context.generator("noise")
        self._of_rank: torch.Generator | None = None
        if context.group.size > 1:
            # on the CPU, since the seed of each update is read here
            self._of_rank = self._generator
            self._generator = torch.Generator().manual_seed(context.seed("noise"))

    def __call__(self, rows: int) -> Tensor:
        """Return the noise `[sample, ...]` of an update."""
        if self._of_rank is None:
            return self._sample(rows, self._generator)
        seed = int(torch.randint(2**62, (), generator=self._generator))
        return self._sample(rows, self._of_rank.manual_seed(seed + self._rank))

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the generator."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the position of the generator."""
        self._generator.set_state(state["generator"])


def noise_of(loss: Any, context: Context) -> LossNoise | None:
    """Return what samples the noise of a loss; None for one without `sample_noise`."""
    return LossNoise(loss.sample_noise, context) if offers(loss, NoiseSampler) else None
