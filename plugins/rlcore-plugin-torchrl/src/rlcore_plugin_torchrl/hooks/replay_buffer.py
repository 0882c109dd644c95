"""Puts batches into a replay buffer, and samples sub-batches from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rlcore.errors import HookArgumentError
from rlcore.types import Stateful, missing, offers
from rlcore_plugin_torchrl.hooks.entries import valid_mask
from rlcore_plugin_torchrl.hooks.stock import StockHook
from rlcore_plugin_torchrl.protocols import (
    GivesSamples,
    KnowsItsPass,
    NamesPriority,
    Prefetching,
    SamplesAhead,
    TakesBatches,
    TakesIndexedPriorities,
    TakesPriorities,
    WithSampler,
)
from rlcore_plugin_torchrl.states import complete

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict


class ReplayBufferTrainer(StockHook):
    """Extends a replay buffer with each batch, samples each sub-batch from it, and hands priorities back.

    Args:
        replay_buffer: has `extend(batch)`, which copies what it keeps, since a collector may write into the same
            storage again; and `sample(batch_size=...)` or, with `iterate`, can be iterated; perhaps
            `update_tensordict_priority(sub_batch)` or `update_priority(index, priority)`, and a state.
        batch_size: of a sub-batch; default: the buffer's.
        memmap: whether batches are memory-mapped before they go into the buffer.
        device: where sub-batches go; default: where the buffer is.
        flatten_tensordicts: whether batches become one-dimensional: the valid steps where there is a mask, else all of
            them, with the last step of each row marked as truncated.
        max_dims: otherwise, the sizes to which batches are padded, -1 for a dimension that is left as it is.
        iterate: whether the buffer is iterated over; its end ends the epoch, and the next one starts over.

    Raises:
        HookError: the buffer lacks a method, or would sample by priorities that it cannot be told.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"batch_process": "extend", "process_optim_batch": "sample", "post_loss": "update_priority"}
    )
    default_name: ClassVar[str] = "replay_buffer"

    def __init__(
        self,
        replay_buffer: Any,
        batch_size: int | None = None,
        memmap: bool = False,
        device: torch.device | str | None = None,
        flatten_tensordicts: bool = False,
        max_dims: Sequence[int] | None = None,
        iterate: bool = False,
    ) -> None:
        lacks = missing(replay_buffer, TakesBatches if iterate else GivesSamples)
        lacks += ["__iter__"] if iterate and not isinstance(replay_buffer, Iterable) else []
        if lacks:
            raise HookArgumentError(f"ReplayBufferTrainer: a {type(replay_buffer).__name__} has no method {lacks[0]}")
        by_priority = any(kind.__name__ == "PrioritizedSampler" for kind in type(sampler_of(replay_buffer)).__mro__)
        if by_priority and not offers(replay_buffer, TakesPriorities):
            raise HookArgumentError(
                f"ReplayBufferTrainer: a {type(replay_buffer).__name__} with a PrioritizedSampler cannot be told the "
                "priorities of a sub-batch; use a buffer with update_tensordict_priority"
            )
        self.replay_buffer = replay_buffer
        self.batch_size = batch_size
        self.memmap = memmap
        self.device = device
        self.flatten_tensordicts = flatten_tensordicts
        self.max_dims = None if max_dims is None else tuple(max_dims)
        self.iterate = iterate
        self._rank = _way_to_rank(replay_buffer)
        self._iterator: Iterator[Any] | None = None

    def extend(self, batch: TensorDict) -> TensorDict:
        """Put a batch into the buffer, and return it as it was put there; the batch handed in stays as it is.

        Raises:
            HookError: it does not fit into `max_dims`.
        """
        batch = (_flat(batch) if self.flatten_tensordicts else self._padded(batch)).cpu()
        if self.memmap:
            batch = batch.memmap()
        self.replay_buffer.extend(batch)
        return batch

    def sample(self, batch: Any = None) -> Any:
        """Return a sub-batch; what is handed in is not used.

        Raises:
            StopIteration: the buffer was iterated over to its end.
        """
        if self.iterate:
            drawn = self._next()
        elif self.batch_size is None:
            drawn = self.replay_buffer.sample()
        else:
            drawn = self.replay_buffer.sample(batch_size=self.batch_size)
        return drawn if self.device is None else drawn.to(self.device)

    def update_priority(self, batch: Any) -> None:
        """Hand the priorities of a sub-batch to the buffer, where it takes any."""
        if self._rank is not None:
            self._rank(batch)

    def inexact(self) -> str | None:
        """Return why a resume would not go on with the same buffer, or None."""
        kind = type(self.replay_buffer).__name__
        if not offers(complete(self.replay_buffer), Stateful):
            return f"the replay buffer ({kind}) has no state that could be saved"
        if offers(self.replay_buffer, Prefetching) and self.replay_buffer._prefetch:
            return f"the replay buffer ({kind}) samples ahead in threads, before or after what is put in meanwhile"
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the buffer, where it has one, and whether a pass over it has begun."""
        buffer = complete(self.replay_buffer)
        if not offers(buffer, Stateful):
            return {}
        return {"replay_buffer": buffer.state_dict(), "iterating": self._iterator is not None}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the state of the buffer; a pass over it goes on where it was, if the buffer has a sampler that knows."""
        if "replay_buffer" in state_dict:
            complete(self.replay_buffer).load_state_dict(state_dict["replay_buffer"])
        goes_on = offers(sampler_of(self.replay_buffer), KnowsItsPass) and state_dict.get("iterating")
        self._iterator = _rest_of_pass(self.replay_buffer) if goes_on else None

    def _next(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self.replay_buffer)
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            raise

    def _padded(self, batch: TensorDict) -> TensorDict:
        if self.max_dims is None:
            return batch
        from tensordict import pad

        size = tuple(batch.batch_size)
        fits = len(size) == len(self.max_dims) and all(
            most in (-1, *range(have, most + 1)) for have, most in zip(size, self.max_dims, strict=True)
        )
        if not fits:
            raise HookArgumentError(
                f"ReplayBufferTrainer: a batch of size {list(size)} does not fit into max_dims {list(self.max_dims)}"
            )
        missing = [0 if most == -1 else most - have for have, most in zip(size, self.max_dims, strict=True)]
        return pad(batch, [amount for number in missing for amount in (0, number)])


def sampler_of(buffer: Any) -> Any:
    """Return the sampler of a replay buffer of TorchRL; None for another buffer."""
    return buffer.sampler if offers(buffer, WithSampler) else None


def _way_to_rank(buffer: Any) -> Callable[[Any], object] | None:
    """Return what is called with each sub-batch to hand its priorities to a buffer; None where it takes none."""
    if offers(buffer, TakesPriorities):
        return buffer.update_tensordict_priority
    if not offers(buffer, TakesIndexedPriorities):
        return None
    # where a buffer has no key of its own, that of TorchRL's losses
    return partial(_rank_by_index, buffer, buffer.priority_key if offers(buffer, NamesPriority) else "td_error")


def _rank_by_index(buffer: TakesIndexedPriorities, key: Any, batch: Any) -> None:
    index, priority = batch.get("index", None), batch.get(key, None)
    if index is not None and priority is not None:
        buffer.update_priority(index, priority)


def _rest_of_pass(buffer: Any) -> Iterator[Any]:
    """Sample until the pass ends, as an iterator of the buffer does; a new one of those would begin another pass."""
    while not buffer.sampler.ran_out or (offers(buffer, SamplesAhead) and len(buffer._prefetch_queue)):
        yield buffer.sample()


def _flat(batch: TensorDict) -> TensorDict:
    """Return the valid steps in one dimension; without a mask all of them, the last of each row truncated."""
    mask = valid_mask(batch)
    if mask is not None:
        return batch[mask]
    truncated = batch.get(("next", "truncated"), None)
    if truncated is not None:
        truncated = truncated.clone()
        truncated[(slice(None),) * (batch.ndim - 1) + (-1,)] = True
        batch = batch.clone(recurse=False).set(("next", "truncated"), truncated)
    return batch.reshape(-1)
