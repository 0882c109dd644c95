"""Memory that all processes of a collector see: batches with their noise, weights, and a count of steps per worker.

It has no name in any file system, so that nothing of it is left when the processes are gone, however they ended.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlcore.collectors import BatchStorage, layout_of
from rlcore.errors import Interruption
from rlcore.process import Board
from rlcore.types import Heart, Key

_ALIGNMENT: Final = 64  # as of torch's own tensors: the bits of a product of matrices depend on it


@dataclass(frozen=True)
class Field:
    """Where a tensor lies in a block.

    Attributes:
        shape: of the tensor.
        dtype: of the tensor.
        offset: in bytes.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int

    @property
    def end(self) -> int:
        """Return the first byte behind it."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def fields_of(tensors: Mapping[Key, tuple[Sequence[int], torch.dtype]]) -> dict[Key, Field]:
    """Return places, one behind the other, for tensors of these shapes and dtypes."""
    fields: dict[Key, Field] = {}
    end = 0
    for name, (shape, dtype) in tensors.items():
        fields[name] = Field(tuple(shape), dtype, -(-end // _ALIGNMENT) * _ALIGNMENT)
        end = fields[name].end
    return fields


class Block:
    """Tensors by key in one piece of shared memory. A process that is started with it sees the same memory.

    Args:
        context: with which the processes are started.
        fields: the tensors.

    Attributes:
        fields: the tensors.
    """

    def __init__(self, context: BaseContext, fields: Mapping[Key, Field]) -> None:
        self.fields = dict(fields)
        size = max((field.end for field in fields.values()), default=0)
        self._memory: Any = context.RawArray(ctypes.c_ubyte, size + _ALIGNMENT)
        self._begin = -ctypes.addressof(self._memory) % _ALIGNMENT  # the same in every process, which map whole pages

    def tensors(self) -> dict[Any, Tensor]:
        """Return views of the memory."""
        return {name: self._view(field) for name, field in self.fields.items()}

    def _view(self, field: Field) -> Tensor:
        count = math.prod(field.shape)
        if not count:
            return torch.empty(field.shape, dtype=field.dtype)
        flat = torch.frombuffer(self._memory, dtype=field.dtype, count=count, offset=self._begin + field.offset)
        return flat.reshape(field.shape)


def batch_fields(steps: int, num_envs: int, space: Any, described: Mapping[Key, Tensor]) -> dict[Key, Field]:
    """Return the fields of a batch.

    Args:
        steps: of each env.
        num_envs: of all workers.
        space: of one observation.
        described: what the policy gives in one step: `noise`, `action` and the entries it describes, `[env, ...]`.
    """
    arrays = layout_of(steps, num_envs, space)
    tensors: dict[Key, tuple[Sequence[int], torch.dtype]] = {
        name: (shape, torch.from_numpy(np.empty(0, dtype)).dtype) for name, (shape, dtype) in arrays.items()
    }
    for key, value in described.items():
        tensors["policy", *((key,) if isinstance(key, str) else key)] = ((steps, *value.shape), value.dtype)
    return fields_of(tensors)


def batch_storage(tensors: Mapping[Key, Tensor], masked: bool, space: Any) -> BatchStorage:
    """Return the storage over the tensors of a batch, of observations of a space."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    described: dict[Key, Tensor] = {}
    for name, tensor in tensors.items():
        if isinstance(name, str):
            arrays[name] = tensor.numpy()
        else:
            described[name[1] if len(name) == 2 else name[1:]] = tensor
    described.pop("noise")
    return BatchStorage(arrays, masked, described.pop("action"), described, space)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter and buffer of a model."""
    named: Iterable[tuple[str, Tensor]] = (*model.named_parameters(), *model.named_buffers())
    return {name: tensor.detach() for name, tensor in named}


def weight_fields(model: nn.Module) -> dict[Key, Field]:
    """Return the fields of the weights of a model."""
    return fields_of({name: (tensor.shape, tensor.dtype) for name, tensor in weights_of(model).items()})


@torch.no_grad()
def copy_weights(source: Mapping[Any, Tensor], target: Mapping[Any, Tensor]) -> None:
    """Copy every tensor of `source` into that of the same name in `target`."""
    for name, tensor in source.items():
        target[name].copy_(tensor)


class Counters:
    """A count of steps per worker, and whether they shall stop.

    Args:
        context: with which the processes are started.
        num_workers: how many there are.
    """

    def __init__(self, context: BaseContext, num_workers: int) -> None:
        self._board = Board(context.RawArray(ctypes.c_int64, Board.LINE * (1 + num_workers)))

    def beats(self, worker: int) -> int:
        """Return the count of a worker."""
        return self._board.line(1 + worker)[0]

    def stop(self) -> None:
        """Let every worker end at its next step."""
        self._board.line(0)[0] = 1

    def heart(self, worker: int) -> SharedHeart:
        """Return what a worker counts its steps on."""
        return SharedHeart(self._board.line(1 + worker), self._board.line(0))


class Stopped(Interruption):
    """Ends a worker in the middle of a batch; no `except Exception` of an env may swallow it."""


class SharedHeart(Heart):
    """The heart of a worker, which beats in a word that the process of the learner sees."""

    __slots__ = ("_count", "_stop")

    def __init__(self, count: memoryview, stop: memoryview) -> None:
        self._count = count
        self._stop = stop
        super().__init__()

    @property
    def beats(self) -> int:
        """Steps so far."""
        return self._count[0]

    @beats.setter
    def beats(self, value: int) -> None:
        self._count[0] = value
        if self._stop[0]:
            raise Stopped
