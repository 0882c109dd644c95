"""A compiled update adds biases beside the activation, with the same values."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.biases import add_apart
from torch import fx

from .one_product import graph_of

aten = torch.ops.aten


def adding(operator, *shapes, dtype=torch.float32, **further):
    """Return a graph of one product that adds, and tensors for it."""
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    return graph_of(operator, *tensors, **further), tensors


TAKEN_APART = {
    "a layer": (aten.addmm.default, (6,), (4, 3), (3, 6)),
    "a row": (aten.addmm.default, (1, 6), (4, 3), (3, 6)),
    "one number": (aten.addmm.default, (1,), (4, 3), (3, 6)),
    "several layers": (aten.baddbmm.default, (2, 1, 6), (2, 4, 3), (2, 3, 6)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", TAKEN_APART)
def test_a_bias_is_added_behind_the_product(case, dtype):
    operator, *shapes = TAKEN_APART[case]
    graph, tensors = adding(operator, *shapes, dtype=dtype)
    assert add_apart(graph) == 1
    graph.lint()
    assert [node.target for node in graph.nodes if node.op == "call_function"][1] is aten.add.Tensor
    torch.testing.assert_close(fx.GraphModule({}, graph)(*tensors), operator(*tensors))


KEPT = {
    "a matrix": ((aten.addmm.default, (4, 6), (4, 3), (3, 6)), {}),
    "a column": ((aten.addmm.default, (4, 1), (4, 3), (3, 6)), {}),
    "shorter floats": ((aten.addmm.default, (6,), (4, 3), (3, 6)), {"dtype": torch.bfloat16}),
    "a multiple": ((aten.addmm.default, (6,), (4, 3), (3, 6)), {"beta": 2}),
    "nothing": ((aten.mm.default, (4, 3), (3, 6)), {}),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_no_bias_stays(case):
    arguments, further = KEPT[case]
    graph, _ = adding(*arguments, **further)
    before = [node.target for node in graph.nodes]
    assert add_apart(graph) == 0
    assert [node.target for node in graph.nodes] == before
