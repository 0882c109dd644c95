"""Large products of a compiled update are oneDNN's where the processor has vectors that MKL does not take."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile import wide_products as module
from rlcore_plugin_compile.graph_pass import as_pass
from rlcore_plugin_compile.wide_products import can_replace, replace_products, wide_products
from torch import fx

from .one_product import graph_of

LARGE = 144  # 144 ** 3 is more than enough
aten = torch.ops.aten

pytestmark = pytest.mark.skipif(not can_replace(), reason="this torch has no oneDNN")


def product_nodes(*shapes, operator=aten.mm.default, dtype=torch.float32):
    """Return a graph of one product of inputs of these shapes, and tensors for them."""
    tensors = [torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype) for shape in shapes]
    return graph_of(operator, *tensors), tensors


SQUARE, BATCH = (LARGE, LARGE), (3, LARGE, LARGE)
REPLACED = {
    "mm": (aten.mm.default, SQUARE, SQUARE),
    "addmm": (aten.addmm.default, (LARGE,), SQUARE, SQUARE),
    "bmm": (aten.bmm.default, BATCH, BATCH),
    "baddbmm": (aten.baddbmm.default, (3, 1, LARGE), BATCH, BATCH),
    "of unlike sides": (aten.mm.default, (2 * LARGE, LARGE), (LARGE, LARGE // 2)),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_large_product_is_replaced_and_has_the_same_value(case):
    operator, *shapes = REPLACED[case]
    graph, tensors = product_nodes(*shapes, operator=operator)
    assert replace_products(graph) == 1
    assert operator not in {node.target for node in graph.nodes}
    graph.lint()
    found = fx.GraphModule({}, graph)(*tensors)
    torch.testing.assert_close(found, operator(*tensors))


KEPT = {
    "small": (aten.mm.default, torch.float32, (64, 64), (64, 64)),
    "of one column": (aten.mm.default, torch.float32, (4 * LARGE, 64 * LARGE), (64 * LARGE, 1)),
    "of other numbers": (aten.mm.default, torch.float64, SQUARE, SQUARE),
    "of many": (aten.bmm.default, torch.float32, (33, LARGE, LARGE), (33, LARGE, LARGE)),
    "added to a matrix": (aten.addmm.default, torch.float32, SQUARE, SQUARE, SQUARE),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_product_that_would_not_be_faster_is_kept(case):
    operator, dtype, *shapes = KEPT[case]
    graph, _ = product_nodes(*shapes, operator=operator, dtype=dtype)
    assert replace_products(graph) == 0
    assert operator in {node.target for node in graph.nodes}


@pytest.mark.slow
def test_the_compiler_takes_it_with_gradients():
    def update(entries, weights, biases):
        def loss(weights):
            hidden = torch.baddbmm(biases, entries.expand(2, LARGE, LARGE), weights).relu()
            return (hidden @ entries.t()).square().mean()

        return torch.func.grad(loss)(weights)

    generator = torch.Generator().manual_seed(1)
    arguments = [torch.randn(shape, generator=generator) for shape in (SQUARE, (2, *SQUARE), (2, 1, LARGE))]
    found = []

    class Counting(type(as_pass([]))):
        def __call__(self, graph):
            found.append(replace_products(graph))

        def uuid(self):
            return None  # nothing of this test is to be found in a cache

    options = {"cpp_wrapper": True, "post_grad_custom_post_pass": Counting()}
    compiled = torch.compile(update, fullgraph=True, dynamic=False, options=options)
    torch.testing.assert_close(compiled(*arguments), update(*arguments), rtol=1e-4, atol=1e-4)
    assert found
    assert found[0] >= 3, "forward and backward"


@pytest.mark.parametrize(
    ("capability", "maker", "taken"),
    [
        ("AVX512", "AuthenticAMD", True),
        ("AVX512", "GenuineIntel", False),
        ("AVX2", "AuthenticAMD", False),
        ("DEFAULT", "ARM", False),
    ],
)
def test_it_is_taken_where_mkl_leaves_vectors_unused(monkeypatch, capability, maker, taken):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(module, "_maker", lambda: maker)
    assert (wide_products() is not None) == taken


def test_another_version_of_torch_goes_without_it(monkeypatch):
    monkeypatch.setattr(module, "_is_worth_it", lambda: True)
    monkeypatch.setattr(module, "look_up", lambda owner, name: None)
    assert wide_products() is None


def test_the_maker_of_this_processor_is_known():
    assert module._maker()
