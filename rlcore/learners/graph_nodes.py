"""New nodes of a graph that a pass changes."""

from __future__ import annotations

from typing import Any

from torch import fx


def call(graph: fx.Graph, operator: Any, *arguments: Any) -> fx.Node:
    """Return a node that calls an operator, with its tensor in `meta["val"]`, as passes find it in every node."""
    node = graph.call_function(operator, arguments)
    node.meta["val"] = operator(*fx.map_arg(arguments, lambda argument: argument.meta["val"]))
    return node
