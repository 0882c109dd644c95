"""The on-policy buffer: several epochs of shuffled minibatches over the batch just collected, then nothing is kept.

Replay buffers come from plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError
from rlcore.types import MASK, Buffer, Collector, Context, Group, Key, with_defaults

if TYPE_CHECKING:
    from tensordict import TensorDict


class RolloutBuffer(Buffer):
    """Epochs over one batch.

    Minibatches have one fixed size, so that a compiled update sees one shape. Masked steps are never sampled. Processes
    that train together take as many minibatches as the one with the most: others repeat rows, and one without valid
    steps yields minibatches without rows.
    """

    class Config(BaseModel, extra="forbid"):
        """How a batch is used."""

        epochs: int = Field(1, ge=1, description="passes over each batch")
        minibatch_size: int = Field(64, ge=1, description="samples per optimisation step")
        remainder: Literal["drop", "fill"] = Field(
            "drop", description="samples left over at the end of an epoch: drop them, or fill up from the start"
        )

    writes: tuple[Key, ...] = ()

    def __init__(self, config: Config, context: Context) -> None:
        collector = context.built.get("collector")
        batch_steps = with_defaults(collector, Collector).batch_steps
        if batch_steps is not None and config.minibatch_size > batch_steps:
            raise ConfigError(
                f"[buffer] minibatch_size = {config.minibatch_size} is more than the {batch_steps} steps of a batch "
                "([collector] frames_per_batch)"
            )
        self.num_epochs = config.epochs
        self.warmup_frames = 0
        self._minibatch_size = config.minibatch_size
        self._fill = config.remainder == "fill"
        self._group = context.group
        self._generator = context.generator("shuffle")

    def add(self, batch: TensorDict) -> None:
        """Do nothing: the batch is handed to `minibatches`."""

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield the minibatches of one epoch in a new random order."""
        mask = batch.get(MASK, None)
        valid = None if mask is None else rows(mask).reshape(-1)
        order, count = self._order(batch.numel(), valid, self._minibatch_size, self.most_updates(batch.numel()))
        size = self._minibatch_size if order.shape[0] else 0
        chunks: dict[Key, tuple[Tensor, ...]] = {}
        keys = tuple(batch.keys(include_nested=True, leaves_only=True))

        def chunks_of(key: Key) -> tuple[Tensor, ...]:
            """Return an entry of each minibatch; all are gathered at once, when the first of them is read."""
            if key not in chunks:
                entry = rows(batch.get(key)).index_select(0, order)
                chunks[key] = torch.split(entry, size) if size else (entry,) * count
            return chunks[key]

        for index in range(count):
            yield Minibatch(size, keys, partial(chunk, chunks_of, index))

    def most_updates(self, batch_steps: int) -> int:
        """Return how many minibatches an epoch of a batch of so many steps has; fewer where steps are masked."""
        size = self._minibatch_size
        return -(-batch_steps // size) if self._fill else batch_steps // size

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the shuffle."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the position of the shuffle."""
        self._generator.set_state(state["generator"])

    def _order(self, units: int, valid: Tensor | None, size: int, most: int) -> tuple[Tensor, int]:
        """Return the numbers of an epoch's units, and its minibatches: whole ones of valid units, each used once first.

        Where units are masked, or other processes have more minibatches, it goes on from the start of the order.

        Args:
            units: how many there are: steps, or stretches of them.
            valid: which of them count, bool `[unit]`; None for all.
            size: units in a minibatch.
            most: minibatches of an epoch where all count.
        """
        order = torch.randperm(units, generator=self._generator, device=self._generator.device)
        if valid is not None:
            order = order[valid[order]]
        num_valid = order.shape[0]
        count = min(most, max(1, -(-num_valid // size))) if num_valid else 0
        if self._group.size > 1:
            count = most_minibatches(self._group, count)
        needed = count * size
        if needed > num_valid > 0:
            order = order.repeat(-(-needed // num_valid))
        return order[:needed], count


def most_minibatches(group: Group, count: int) -> int:
    """Return the largest number of minibatches that a process of the group has; all of them call this at once."""
    return max(counts[0] for counts in group.share((count,)))


def chunk(chunks_of: Callable[[Key], tuple[Tensor, ...]], index: int, key: Key) -> Tensor:
    """Return the entry of a key in the minibatch of this number."""
    return chunks_of(key)[index]


def rows(entry: Tensor) -> Tensor:
    """Return `[env, time, ...]` as `[env * time, ...]`, without copying where memory is laid out by time."""
    return entry.transpose(0, 1).flatten(0, 1)
