"""Biases of a compiled update, added where the activation is computed and not by the product of matrices.

A product that adds is given its result filled with the bias: a kernel, and reading what it wrote. The compiler makes
one loop of a sum and the activation behind it. With narrow products and gathered rows, this takes a seventh
off an iteration of DQN on CartPole. Products of shorter floats keep their biases.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import fx

from rlcore_plugin_compile.graph_nodes import call, replace

_aten = torch.ops.aten
_WITHOUT: Final[dict[Any, Any]] = {_aten.addmm.default: _aten.mm.default, _aten.baddbmm.default: _aten.bmm.default}
# of shorter floats, products round before the sum
_DTYPES: Final = (torch.float32, torch.float64)


def add_apart(graph: fx.Graph) -> int:
    """Take the biases out of the products of a graph, whose nodes have their tensors in `meta["val"]`.

    Returns:
        How many.
    """
    return replace(graph, _adds_bias, _apart)


def _apart(graph: fx.Graph, node: fx.Node) -> fx.Node:
    bias, left, right = node.args
    return call(graph, _aten.add.Tensor, call(graph, _WITHOUT[node.target], left, right), bias)


def _adds_bias(node: fx.Node) -> bool:
    """Return whether a product adds the same to each of its rows, and nothing scales either."""
    if node.target not in _WITHOUT or node.kwargs:
        return False
    bias, result = node.args[0].meta["val"], node.meta["val"]  # type: ignore[union-attr]
    shape = (1,) * (result.ndim - bias.ndim) + tuple(bias.shape)
    return result.is_cpu and result.dtype in _DTYPES and shape[-2] == 1
