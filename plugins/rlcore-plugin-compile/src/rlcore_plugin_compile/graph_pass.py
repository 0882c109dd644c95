"""Changes of the graph of a compiled update, before the compiler makes kernels of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from rlcore_plugin_compile import graph_nodes
from rlcore_plugin_compile.biases import add_apart
from rlcore_plugin_compile.narrow_products import turn_narrow
from rlcore_plugin_compile.tanh import through_sigmoid
from rlcore_plugin_compile.wide_products import wide_products

# changes a graph whose nodes have their tensors in `meta["val"]`, and returns how many nodes were replaced
Change = Callable[[fx.Graph], int]


def graph_pass() -> Any:
    """Return the pass that the compiler takes; None where this version of torch has no place for one."""
    wide = wide_products()  # first: its products add biases themselves
    return as_pass([*([] if wide is None else [wide]), add_apart, turn_narrow, through_sigmoid])


def as_pass(changes: Sequence[Change]) -> Any:
    """Return changes of a graph as one pass over it; None where this version of torch has no place for one."""
    try:
        from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
    except ImportError:
        return None

    class Changes(CustomGraphPass):
        """Makes each change, in their order."""

        def __call__(self, graph: fx.Graph) -> None:
            for change in changes:
                change(graph)

        def uuid(self) -> Any:
            """Say which changes these are, since the compiler keeps what it made of them."""
            files = [sys.modules[change.__module__].__file__ for change in changes]
            return get_hash_for_files((__file__, str(graph_nodes.__file__), *map(str, files)))

    return Changes()
