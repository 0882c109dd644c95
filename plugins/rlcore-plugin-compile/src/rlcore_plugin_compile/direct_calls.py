"""A compiled function, called by the tensors that its kernels take and without what torch does around them.

What `torch.compile` returns runs a frame of Python that takes lists apart and puts results together, between looks at
settings and guards. For a small update that costs a quarter of its time. Which tensor goes where is the same in every
call, so it is found out in the first one. Where that fails, torch makes all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rlcore_plugin_compile.torch_private import graph_compiler

# from the tensors of a graph to those that it returns
Kernels = Callable[..., Sequence[Tensor]]


class DirectCalls:
    """Calls a function of tensors by the kernels that were made of it.

    The first call goes through torch. Where it shows that a tensor is neither an entry nor fixed, or that this version
    of torch makes graphs in another way, all calls do.

    Args:
        function: from a list of tensors, and lists of tensors that are the same in each call, to a tuple of tensors.
        options: of torch's compiler.
        further: options of `torch.compile` itself.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], further: dict[str, Any]) -> None:
        self._options = options
        self._graph_compiler = graph_compiler()
        self._kernels: Kernels | None = None
        self._taken: list[Any] = []
        self._given: Sequence[Any] = ()
        self._looked = False
        self._direct: Callable[[list[Tensor]], Sequence[Tensor]] | None = None
        if self._graph_compiler is None:
            self._through_torch = torch.compile(function, fullgraph=True, dynamic=False, options=options | further)
        else:
            self._through_torch = torch.compile(
                function, fullgraph=True, dynamic=False, backend=self._made, options=dict(further)
            )

    @property
    def is_direct(self) -> bool:
        """Whether the next call goes past torch."""
        return self._direct is not None

    def __call__(self, entries: list[Tensor], *fixed: list[list[Tensor]]) -> Sequence[Tensor]:
        """Call it."""
        if self._direct is not None:
            return self._direct(entries)
        returned: tuple[Tensor, ...] = self._through_torch(entries, *fixed)
        if self._kernels is not None:
            self._direct = self._without_torch(self._kernels, entries, fixed, returned)
            self._kernels, self._taken, self._given, self._looked = None, [], (), True
        return returned

    def _made(self, graph: torch.fx.GraphModule, examples: list[Any], **_: Any) -> Kernels:
        """Let torch make the kernels, and note what they take and give in their first call."""
        assert self._graph_compiler is not None
        kernels: Kernels = self._graph_compiler(graph, examples, options=self._options)

        def first(*arguments: Any) -> Sequence[Tensor]:
            outputs = kernels(*arguments)
            if not self._looked:  # else calls stay as they are, and nothing is kept of them
                self._kernels, self._taken, self._given = kernels, list(arguments), outputs
            return outputs

        return first

    def _without_torch(
        self, kernels: Kernels, entries: list[Tensor], fixed: Sequence[list[list[Tensor]]], returned: Sequence[Tensor]
    ) -> Callable[[list[Tensor]], Sequence[Tensor]] | None:
        """Return the function over the kernels alone; None where a tensor came from elsewhere."""
        numbers = {id(entry): number for number, entry in enumerate(entries)}
        stays = {id(tensor) for lists in fixed for tensors in lists for tensor in tensors} - numbers.keys()
        of_entries = [(place, numbers[id(taken)]) for place, taken in enumerate(self._taken) if id(taken) in numbers]
        places = {id(given): place for place, given in enumerate(self._given)}
        known = len(of_entries) + sum(id(taken) in stays for taken in self._taken) == len(self._taken)
        if not known or any(id(value) not in places for value in returned):
            return None
        order = [places[id(value)] for value in returned]
        arguments = [taken if id(taken) in stays else None for taken in self._taken]

        def direct(entries: list[Tensor]) -> Sequence[Tensor]:
            taken = arguments.copy()
            for place, number in of_entries:
                taken[place] = entries[number]
            given = kernels(*taken)
            return [given[place] for place in order]

        return direct
