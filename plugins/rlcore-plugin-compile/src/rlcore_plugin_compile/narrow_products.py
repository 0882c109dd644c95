"""Matrix products of a compiled update whose result has few columns, turned on their side.

The gradient of the first layer's weights is one: few inputs, many units. MKL goes along the columns of the right
matrix, and where these are few and lie in rows, most of its vectors are empty. The transposed product has the same
numbers, in an eighth to the whole of the time (`benchmarks/results/narrow-products.md`). Wider ones stay as they are.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import fx

from rlcore_plugin_compile.graph_nodes import call, replace

_aten = torch.ops.aten
_PRODUCTS: Final[tuple[Any, ...]] = (_aten.mm.default, _aten.bmm.default)
# columns up to which the transposed product was faster, whatever the other sizes
_FEW: Final = 32


def turn_narrow(graph: fx.Graph) -> int:
    """Compute the narrow products of a graph by their transposes; nodes have their tensors in `meta["val"]`.

    Returns:
        How many.
    """
    return replace(graph, _is_narrow, _turned)


def _turned(graph: fx.Graph, node: fx.Node) -> fx.Node:
    dims = [1, 0] if node.target is _aten.mm.default else [0, 2, 1]
    left, right = (call(graph, _aten.permute.default, argument, dims) for argument in node.args)
    return call(graph, _aten.permute.default, call(graph, node.target, right, left), dims)


def _is_narrow(node: fx.Node) -> bool:
    """Return whether a product has few columns, more rows, and a right matrix that lies in rows."""
    if node.target not in _PRODUCTS or node.kwargs:
        return False
    result, right = node.meta["val"], node.args[1].meta["val"]  # type: ignore[union-attr]
    rows, columns = result.shape[-2:]
    if not (result.is_cpu and result.dtype is torch.float32 and isinstance(rows, int) and isinstance(columns, int)):
        return False
    return 1 < columns <= min(_FEW, rows - 1) and right.stride(-1) == 1 and right.stride(-2) != 1
