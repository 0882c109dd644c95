"""The buffers of several policies as one: the minibatches of one policy after those of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlcore.types import Buffer, Progress, with_defaults
from rlcore_plugin_policies.batches import OwnBatches

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor


@dataclass
class OwnMinibatch:
    """A minibatch of one policy.

    Attributes:
        policy: whose it is.
        entries: the minibatch.
        ended: whether its policy takes no more minibatches in this epoch.
    """

    policy: str
    entries: Any
    ended: bool = False


class JointBuffer:
    """Gives each buffer the batch of its policy.

    An epoch has the minibatches of all policies. A policy whose buffer has fewer epochs, or waits for more frames, has
    none in the others.

    Args:
        buffers: by the name of their policy.
        batches: takes the batches of policies out of those of all.
        progress: the clocks of the run.

    Attributes:
        num_epochs: the most that a buffer has.
        warmup_frames: the fewest that one waits for.
    """

    def __init__(self, buffers: Mapping[str, Buffer], batches: OwnBatches, progress: Progress) -> None:
        self._buffers = buffers
        self._batches = batches
        self._progress = progress
        self._epoch = 0

    @property
    def num_epochs(self) -> int:
        """The most epochs that a buffer has."""
        return max(buffer.num_epochs for buffer in self._buffers.values())

    @property
    def warmup_frames(self) -> int:
        """The fewest frames after which one has minibatches."""
        return min(buffer.warmup_frames for buffer in self._buffers.values())

    def add(self, batch: TensorDict) -> None:
        """Take a batch in, and begin to count its epochs."""
        self._epoch = 0
        for name, buffer in self._buffers.items():
            buffer.add(self._batches.of(name, batch))

    def minibatches(self, batch: TensorDict) -> Iterator[Any]:
        """Yield the minibatches of an epoch, those of one policy after those of another."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        for name, buffer in self._buffers.items():
            if epoch >= buffer.num_epochs or self._progress.frames < buffer.warmup_frames:
                continue
            for entries in buffer.minibatches(self._batches.of(name, batch)):
                minibatch = OwnMinibatch(name, entries)
                yield minibatch
                if minibatch.ended:
                    break

    def feedback(self, minibatch: Any, values: Mapping[str, Tensor]) -> None:
        """Tell the buffer of a minibatch what the update with it returned."""
        part: OwnMinibatch = minibatch
        if not part.ended:
            prefix = f"{part.policy}/"
            unprefixed = {key.removeprefix(prefix): value for key, value in values.items()}
            self._buffers[part.policy].feedback(part.entries, unprefixed)

    def forget_episodes(self) -> None:
        """Let each drop what it carries of running episodes."""
        for buffer in self._buffers.values():
            with_defaults(buffer, Buffer).forget_episodes()
