"""A compiled update computes products of few columns by their transposes, with the same values."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.narrow_products import turn_narrow
from torch import fx

from .one_product import graph_of

aten = torch.ops.aten


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


TURNED = {
    "the gradient of a first layer": (aten.mm.default, numbers(50, 40).t(), numbers(50, 4)),
    "that of several": (aten.bmm.default, numbers(3, 50, 40).transpose(1, 2), numbers(3, 50, 4)),
    "of inputs that they share": (aten.bmm.default, numbers(3, 40, 50), numbers(50, 4).expand(3, 50, 4)),
    "of a column of wider rows": (aten.mm.default, numbers(40, 50), numbers(50, 9)[:, :4]),
}


@pytest.mark.parametrize("case", TURNED)
def test_a_narrow_product_is_turned_and_has_the_same_value(case):
    operator, left, right = TURNED[case]
    graph = graph_of(operator, left, right)
    assert turn_narrow(graph) == 1
    graph.lint()
    (product,) = [node for node in graph.nodes if node.target is operator]
    assert product.meta["val"].shape[-2:] == (4, 40)
    found = fx.GraphModule({}, graph)(left, right)
    assert found.shape == (*left.shape[:-1], 4)
    torch.testing.assert_close(found, operator(left, right))


KEPT = {
    "wide": (numbers(40, 50), numbers(50, 33)),
    "square": (numbers(4, 50), numbers(50, 4)),
    "of one column": (numbers(40, 50), numbers(50, 1)),
    "of columns that lie in columns": (numbers(40, 50), numbers(4, 50).t()),
    "of other numbers": (numbers(40, 50).double(), numbers(50, 4).double()),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_product_that_would_not_be_faster_is_kept(case):
    graph = graph_of(aten.mm.default, *KEPT[case])
    assert turn_narrow(graph) == 0
    assert len(graph.nodes) == 4
