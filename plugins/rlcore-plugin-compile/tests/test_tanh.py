"""A compiled update computes tanh by way of the sigmoid, with almost the same values."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.tanh import through_sigmoid
from torch import fx

from .one_product import graph_of

aten = torch.ops.aten


def test_its_values_are_those_of_tanh():
    numbers = torch.linspace(-20, 20, 100_001)
    graph = graph_of(aten.tanh.default, numbers)
    assert through_sigmoid(graph) == 1
    graph.lint()
    assert not [node for node in graph.nodes if node.target is aten.tanh.default]
    torch.testing.assert_close(fx.GraphModule({}, graph)(numbers), numbers.tanh(), rtol=0, atol=2e-7)


@pytest.mark.parametrize("operator", [aten.tanh.default, aten.relu.default])
def test_other_numbers_and_other_activations_are_kept(operator):
    graph = graph_of(operator, torch.randn(9, dtype=torch.float64))
    assert through_sigmoid(graph) == 0
    assert [node for node in graph.nodes if node.target is operator]
