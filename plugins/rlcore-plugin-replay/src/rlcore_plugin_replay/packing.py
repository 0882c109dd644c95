"""Batches as columns, and copying the columns of a batch into packed rows of host memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.types import MASK, CollectedBatch, Key
from rlcore_plugin_replay.layout import WORD, RowLayout

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array

_BITS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(slots=True)
class Batch:
    """Batch as columns.

    Attributes:
        columns: key to `[*size, *shape]`, all entries but the mask.
        mask: `[*size, 1]`, False for steps to leave out; None to keep all.
        size: of the batch.
    """

    columns: dict[Key, Tensor]
    mask: Tensor | None
    size: torch.Size

    @classmethod
    def of(cls, batch: TensorDict | CollectedBatch) -> Batch:
        """Return the columns of a batch."""
        if isinstance(batch, CollectedBatch):
            return cls(batch.columns, batch.mask, batch.batch_size)
        columns = _leaves(batch)
        return cls(columns, columns.pop(MASK, None), batch.batch_size)

    def pieces(self, length: int) -> list[Batch]:
        """Return the batch cut into pieces of `length` steps, in the order of its rows."""
        dims = len(self.size)
        dim = 1 if dims == 2 else 0
        columns = {key: torch.split(column, length, dim) for key, column in self.columns.items()}
        masks = None if self.mask is None else torch.split(self.mask, length, dim)
        return [
            Batch(
                {key: parts[number] for key, parts in columns.items()},
                None if masks is None else masks[number],
                part.shape[:dims],
            )
            for number, part in enumerate(next(iter(columns.values())))
        ]


class Packing:
    """Copies the columns of batches of one size into rows; for tensors of an earlier batch it reuses their views.

    Args:
        batch: the first one.
        places: views of the rows for each column: key to `[*lead, *shape]`.

    Attributes:
        valid: the mask `[*lead]`; None to keep all.
    """

    def __init__(self, batch: Batch, places: Mapping[Key, Array]) -> None:
        self.valid: Array | None = None
        self._size = batch.size
        self._keys = list(batch.columns)
        tensors = [*batch.columns.values(), batch.mask]
        self._kinds = [_kind(tensor) for tensor in tensors]
        self._places = [places[key] for key in self._keys]
        self._pairs: list[tuple[Any, Any]] = [(None, None)] * len(self._keys)
        self._tensors: list[Tensor | None] = [None] * len(tensors)
        self._memory = [0] * len(tensors)
        for number, tensor in enumerate(tensors):
            self._take(number, tensor)

    def fits(self, batch: Batch) -> bool:
        """Take the columns of another batch of the same size, keys, dtypes and shapes; return whether it is one."""
        if batch.size != self._size or list(batch.columns) != self._keys:
            return False
        tensors = [*batch.columns.values(), batch.mask]
        memory = [_address(tensor) for tensor in tensors]  # a tensor may get other memory, as by `set_`
        if memory == self._memory and all(map(is_, tensors, self._tensors)):
            return True
        for number, tensor in enumerate(tensors):
            if tensor is not self._tensors[number] or memory[number] != self._memory[number]:
                if _kind(tensor) != self._kinds[number]:
                    return False
                self._take(number, tensor)
        return True

    def pack(self) -> None:
        """Copy the current content of the columns."""
        for place, source in self._pairs:
            place[:] = source

    def _take(self, number: int, tensor: Tensor | None) -> None:
        """Prepare the copy of a column, or of the mask, which is the last of the tensors."""
        dims = len(self._size)
        if tensor is None:
            self.valid = None
            return
        source = array_of(tensor)
        shares_memory = source.__array_interface__["data"][0] == tensor.data_ptr()  # else it is a copy from a device
        self._tensors[number] = tensor if shares_memory else None
        self._memory[number] = _address(tensor)
        source = source.swapaxes(0, 1) if dims == 2 else source if dims else source[np.newaxis]
        if number < len(self._keys):
            self._pairs[number] = copying(self._places[number], source)
        else:
            self.valid = source.reshape(source.shape[: max(dims, 1)])


def leading(size: torch.Size) -> tuple[int, ...]:
    """Return the shape of the rows of a batch before they are flattened: `[time, env]`, or the size of the batch."""
    return (size[1], size[0]) if len(size) == 2 else tuple(size) if size else (1,)


def arrays_of(layout: RowLayout, lead: tuple[int, ...]) -> tuple[Array, dict[Key, Array]]:
    """Return new rows `[row, word]`, and views `[*lead, *shape]` of their entries."""
    packed = torch.zeros(math.prod(lead), layout.words, dtype=WORD)
    places = {key: view.view(*lead, *view.shape[1:]) for key, view in layout.views(packed).items()}
    return packed.numpy(), {key: array_of(view) for key, view in places.items()}


def array_of(tensor: Tensor) -> Array:
    """Return a tensor as an array, over the same memory where it is on the CPU; a dtype that NumPy lacks as bits."""
    try:
        return tensor.numpy(force=True)
    except TypeError:
        return tensor.detach().view(_BITS[tensor.dtype.itemsize]).numpy(force=True)


def _leaves(batch: Any) -> dict[Key, Tensor]:
    """Return the tensors of a batch by key."""
    # in a third of the time of `keys` and `get` of the TensorDict
    leaves: dict[Key, Tensor] = {}
    for key, value in batch.items():
        if isinstance(value, Tensor):
            leaves[key] = value
        else:
            for below, tensor in _leaves(value).items():
                leaves[(key, *below) if isinstance(below, tuple) else (key, below)] = tensor
    return leaves


def _kind(tensor: Tensor | None) -> tuple[torch.dtype, torch.Size] | None:
    return None if tensor is None else (tensor.dtype, tensor.shape)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def copying(place: Array, source: Array) -> tuple[Any, Any]:
    """Return target and source of a copy."""
    # as bytes where both are contiguous, which takes a third of the time
    if place.flags.c_contiguous and source.flags.c_contiguous and source.nbytes:
        return _bytes(place), _bytes(source)
    return place, source


def _bytes(array: Array) -> memoryview:
    flat: Any = array.reshape(-1).view(np.uint8)  # typed as no buffer on Python 3.11
    return memoryview(flat)
