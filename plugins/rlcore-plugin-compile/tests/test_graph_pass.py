"""The pass over the graph of a compiled update makes its changes in their order, and is told apart by them."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile import graph_pass as module
from rlcore_plugin_compile.biases import add_apart
from rlcore_plugin_compile.narrow_products import turn_narrow
from rlcore_plugin_compile.tanh import through_sigmoid
from rlcore_plugin_compile.wide_products import replace_products


def test_large_products_come_before_biases_and_each_set_of_changes_has_its_own_name(monkeypatch):
    made = []
    monkeypatch.setattr(module, "as_pass", made.append)
    for wide in (None, replace_products):
        monkeypatch.setattr(module, "wide_products", lambda wide=wide: wide)
        module.graph_pass()
    always = [add_apart, turn_narrow, through_sigmoid]
    assert made == [always, [replace_products, *always]]
    monkeypatch.undo()
    names = {module.as_pass(changes).uuid() for changes in (*made, [replace_products])}
    assert len(names) == 3


def test_a_pass_makes_every_change():
    done = []
    module.as_pass([lambda graph: done.append(("first", graph)), lambda graph: done.append(("second", graph))])("graph")
    assert done == [("first", "graph"), ("second", "graph")]


@pytest.mark.slow
def test_the_compiler_takes_the_pass_of_this_machine():
    def update(entries, weight, bias):
        return torch.addmm(bias, entries, weight).relu().sum()

    generator = torch.Generator().manual_seed(1)
    arguments = [torch.randn(shape, generator=generator) for shape in ((8, 4), (4, 16), (16,))]
    found = []

    class Counting(type(module.as_pass([]))):
        def __call__(self, graph):
            module.graph_pass()(graph)
            found.append({node.target for node in graph.nodes})

        def uuid(self):
            return None  # nothing of this test is to be found in a cache

    compiled = torch.compile(update, fullgraph=True, dynamic=False, options={"post_grad_custom_post_pass": Counting()})
    torch.testing.assert_close(compiled(*arguments), update(*arguments), rtol=1e-5, atol=1e-5)
    assert torch.ops.aten.mm.default in found[0]
    assert torch.ops.aten.addmm.default not in found[0]
