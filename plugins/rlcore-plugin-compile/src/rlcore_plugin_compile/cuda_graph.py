"""A function of tensors on a CUDA device, recorded once and replayed: launching its kernels costs one call.

On an H100 a compiled SAC update that is replayed makes HalfCheetah 4.3 times as fast as the eager one
(`benchmarks/results/gpu.md`). Several ranks sum between two graphs, and launch their kernels one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# calls before the recording: kernels are chosen, and memory that stays is taken, in the first ones
_WARM_UP = 2


class CudaGraph:
    """Replays a function that reads and changes the same tensors in each call.

    Each call copies its entries to where the function reads them in all calls. The first calls run as ever; then the
    kernels are recorded, and each further call replays them. What is returned are copies, as the next replay writes
    over it.

    Args:
        function: from a list of tensors and further arguments, which are the same in each call, to tensors. It draws
            nothing, and reads nothing on the host.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._calls = 0
        self._graph: Any = None
        self._entries: list[Tensor] = []
        self._returned: tuple[Tensor, ...] = ()

    def __call__(self, entries: list[Tensor], *fixed: Any) -> Any:
        """Call it, or replay it."""
        # a compiled function is made for the strides of its first call, and an entry can be a column of wider rows
        if not self._calls:
            self._entries = [torch.empty_like(entry, memory_format=torch.contiguous_format) for entry in entries]
        for static, entry in zip(self._entries, entries, strict=True):
            static.copy_(entry)
        self._calls += 1
        if self._calls <= _WARM_UP:
            return self._function(self._entries, *fixed)
        if self._graph is None:
            self._record(fixed)
        self._graph.replay()
        return tuple(value.clone() for value in self._returned)

    def _record(self, fixed: tuple[Any, ...]) -> None:
        """Record the kernels, which runs none of them."""
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._returned = tuple(self._function(self._entries, *fixed))
        self._graph = graph
