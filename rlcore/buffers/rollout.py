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

from rlcore.buffers.minibatch import Minibatch
from rlcore.errors import ConfigError
from rlcore.types import MASK, Key
from rlcore.types.context import Context

if TYPE_CHECKING:
    from tensordict import TensorDict


class RolloutBuffer:
    """Epochs over one batch.

    Minibatches have one fixed size, so that a compiled update sees one shape. Masked steps are never drawn.
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
        batch_steps = getattr(context.parts.get("collector"), "batch_steps", None)
        if batch_steps is not None and config.minibatch_size > batch_steps:
            raise ConfigError(
                f"[buffer] minibatch_size = {config.minibatch_size} is more than the {batch_steps} steps of a batch "
                "([collector] frames_per_batch)"
            )
        self.num_epochs = config.epochs
        self.warmup_frames = 0
        self._minibatch_size = config.minibatch_size
        self._fill = config.remainder == "fill"
        self._generator = context.generator("shuffle")

    def add(self, batch: TensorDict) -> None:
        """Do nothing: the batch is handed to `minibatches`."""

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield the minibatches of one epoch in a new random order."""
        order = self._order(batch)
        size = self._minibatch_size
        chunks: dict[Key, tuple[Tensor, ...]] = {}
        keys = tuple(batch.keys(include_nested=True, leaves_only=True))

        def chunks_of(key: Key) -> tuple[Tensor, ...]:
            if key not in chunks:
                chunks[key] = torch.split(rows(batch.get(key)).index_select(0, order), size)
            return chunks[key]

        for index in range(order.shape[0] // size):
            yield Minibatch(size, keys, partial(_chunk, chunks_of, index))

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Do nothing: there are no priorities."""

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the shuffle."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the position of the shuffle."""
        self._generator.set_state(state["generator"])

    def _order(self, batch: TensorDict) -> Tensor:
        """Return the row numbers of an epoch: whole minibatches of valid steps, each drawn once as far as they go.

        Where steps are masked, the last minibatch is filled up from the start of the order.
        """
        steps, size = batch.numel(), self._minibatch_size
        order = torch.randperm(steps, generator=self._generator, device=self._generator.device)
        mask = batch.get(MASK, None)
        if mask is not None:
            order = order[rows(mask).reshape(-1)[order]]
        valid = order.shape[0]
        if not valid:
            return order
        whole = -(-steps // size) if self._fill else steps // size
        wanted = min(whole, max(1, -(-valid // size))) * size
        if wanted > valid:
            order = order.repeat(-(-wanted // valid))
        return order[:wanted]


def _chunk(chunks_of: Callable[[Key], tuple[Tensor, ...]], index: int, key: Key) -> Tensor:
    return chunks_of(key)[index]


def rows(entry: Tensor) -> Tensor:
    """Return `[env, time, ...]` as `[env * time, ...]`, without copying where memory is laid out by time."""
    return entry.transpose(0, 1).flatten(0, 1)
