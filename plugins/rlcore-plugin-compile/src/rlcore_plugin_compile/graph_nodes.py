"""Nodes of a graph that a pass changes; each has its tensor in `meta["val"]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx


def call(graph: fx.Graph, operator: Any, *arguments: Any) -> fx.Node:
    """Return a new node that calls an operator."""
    node = graph.call_function(operator, arguments)
    node.meta["val"] = operator(*fx.map_arg(arguments, lambda argument: argument.meta["val"]))
    return node


def replace(
    graph: fx.Graph, fits: Callable[[fx.Node], bool], replacement: Callable[[fx.Graph, fx.Node], fx.Node]
) -> int:
    """Replace the nodes that fit, each by the last of the new nodes that have its value; return how many."""
    matches = [node for node in graph.nodes if fits(node)]
    for node in matches:
        with graph.inserting_before(node):
            node.replace_all_uses_with(replacement(graph, node))
        graph.erase_node(node)
    return len(matches)
