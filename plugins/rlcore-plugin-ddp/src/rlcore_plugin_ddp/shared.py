"""A group of ranks on one host, which hand each other numbers through shared memory."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.errors import RankLost
from rlcore.types import Group
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.packing import pack, unpack

# bytes of a place, from which on its memory is given back
_LARGE: Final = 1 << 20
# elements of a sum, from which on more than two ranks share the work
_LONG: Final = 1 << 15


class SharedGroup(Group):
    """The ranks that share a memory.

    A sum costs each rank one copy of its numbers and one pass over those of all, which are added in the order of the
    ranks. Of long sums over more than two ranks each adds a stretch, and takes the others from those who added them.
    What is handed over must be seen by the others in the order in which it was written, which the x86-64 family of
    processors promises.

    Args:
        memory: of the ranks, as this one sees it.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        generation: how often ranks were started for this run, this time included.
    """

    def __init__(self, memory: Memory) -> None:
        self.rank = memory.rank
        self.size = memory.size
        self.generation = memory.generation
        self._memory = memory
        self._tensors: dict[tuple[torch.dtype, int], list[list[Tensor]]] = {}
        self._numbers: dict[int, list[list[memoryview]]] = {}

    def sum_(self, flat: Tensor) -> None:
        """Replace a flat tensor by its sum over the ranks, added in their order."""
        if not flat.numel():
            return
        key = (flat.dtype, flat.numel())
        places = self._tensors.get(key) or self._tensor_places(*key)
        every = places[self._memory.begin("sum_", flat.nbytes)]
        every[self.rank].copy_(flat)
        self._memory.meet()
        if self.size > 2 and flat.numel() >= _LONG:
            # each adds a stretch, and takes those of the others: a second meeting costs less than the passes it saves
            total = places[self._memory.begin("sum_", flat.nbytes)][0]
            stretches = [tensor.tensor_split(self.size)[self.rank] for tensor in (*every, total)]
            _add(stretches[:-1], stretches[-1])
            self._memory.meet()
            flat.copy_(total)
        elif flat.device.type == "cpu":
            # of the first two addends one may be the total itself, which is nearer than its copy
            _add([flat if rank == self.rank < 2 else tensor for rank, tensor in enumerate(every)], flat)
        else:
            total = torch.empty_like(every[0])
            _add(every, total)
            flat.copy_(total)

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank."""
        return self._share("share", numbers)

    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return the tree and the tensors of every rank, on rank 0."""
        packed = pack(tree, tensors or {})
        lengths = [length for (length,) in self._share("gather", (len(packed),))]
        room, size = self._memory.part(max(lengths))
        place = self._memory.begin("gather", max(lengths))
        begins = [(place * self.size + rank) * size for rank in range(self.size)]
        room[begins[self.rank] : begins[self.rank] + len(packed)] = packed
        self._memory.meet()
        if self.rank:
            return ()
        trees = [unpack(room[begin : begin + length]) for begin, length in zip(begins, lengths, strict=True)]
        if size >= _LARGE:  # what was gathered once may be many times what the ranks hand each other every day
            room.madvise(mmap.MADV_REMOVE, begins[0], self.size * size)
        return trees

    def barrier(self) -> None:
        """Wait until every rank calls this."""
        self._memory.begin("barrier", 0)
        self._memory.meet()

    def beat(self) -> None:
        """Say that this rank moves although it makes no call."""
        self._memory.beat()

    def gone(self) -> RankLost | None:
        """Return the loss that can be known without a call."""
        return self._memory.gone()

    def _share(self, kind: str, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        places = self._numbers.get(len(numbers)) or self._number_places(len(numbers))
        every = places[self._memory.begin(kind, 8 * len(numbers))]
        every[self.rank][:] = array("q", numbers)
        self._memory.meet()
        return [place.tolist() for place in every]

    def _tensor_places(self, dtype: torch.dtype, count: int) -> list[list[Tensor]]:
        room, size = self._memory.part(dtype.itemsize * count)

        def view(number: int) -> Tensor:
            return torch.frombuffer(room, dtype=dtype, count=count, offset=number * size)

        places = [[view(first + rank) for rank in range(self.size)] for first in (0, self.size)]
        return self._tensors.setdefault((dtype, count), places)

    def _number_places(self, count: int) -> list[list[memoryview]]:
        room, size = self._memory.part(8 * count)

        def view(number: int) -> memoryview:
            return memoryview(room)[number * size : number * size + 8 * count].cast("q")

        places = [[view(first + rank) for rank in range(self.size)] for first in (0, self.size)]
        return self._numbers.setdefault(count, places)


def _add(tensors: Sequence[Tensor], total: Tensor) -> None:
    """Write the sum of tensors, in their order, to `total`."""
    if len(tensors) == 1:
        total.copy_(tensors[0])
        return
    torch.add(tensors[0], tensors[1], out=total)
    for tensor in tensors[2:]:
        total.add_(tensor)
