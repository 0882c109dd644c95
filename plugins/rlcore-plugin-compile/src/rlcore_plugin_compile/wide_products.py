"""Large matrix products of a compiled update by oneDNN, on processors whose widest vectors MKL leaves unused.

On a CPU torch multiplies matrices of float32 by MKL, which computes with AVX-512 on the processors of one maker alone.
oneDNN, which torch brings along too, does on all of them, in half the time. Elsewhere products are
MKL's. Whether it is taken follows from the processor and not from a measurement, so that two runs on one machine have
the same bits.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, fx

from rlcore_plugin_compile.graph_nodes import call, replace
from rlcore_plugin_compile.torch_private import look_up

# multiplications of a product from which on it is worth the constant costs of oneDNN, and of copies in its order
_LARGE: Final = 2**21
# rows and columns that a kernel of wide vectors needs
_LEAST: Final = 16
# products of one batch, each of which becomes a call
_MOST: Final = 32
_NAME: Final = "rlcore::wide_product"
_aten = torch.ops.aten
# the products of a graph, and whether they begin with what is added
_PRODUCTS: Final[dict[Any, bool]] = {
    _aten.mm.default: False,
    _aten.bmm.default: False,
    _aten.addmm.default: True,
    _aten.baddbmm.default: True,
}


def wide_products() -> Callable[[fx.Graph], int] | None:
    """Return what replaces the large products of a graph, or None where MKL has the widest vectors of the processor.

    None also where this version of torch lacks one of the private parts that it needs.
    """
    return replace_products if _is_worth_it() and can_replace() else None


def can_replace() -> bool:
    """Return whether this version of torch has oneDNN, and all parts that a product of its own needs."""
    return bool(torch.backends.mkldnn.is_available()) and _offer_operator()  # type: ignore[no-untyped-call]


def replace_products(graph: fx.Graph) -> int:
    """Replace the large products of a graph, whose nodes have their tensors in `meta["val"]`; return how many."""
    return replace(graph, _is_large, _replacement)


def _is_worth_it() -> bool:
    """Return whether the processor has AVX-512 and MKL does not take it."""
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkl.is_available() and "intel" not in _maker().lower()  # type: ignore[no-untyped-call]


def _maker() -> str:
    """Return the name that the processor gives to its maker; only Linux says it in a file."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("vendor_id"):
                return line.partition(":")[2].strip()
    return platform.processor() or "intel"


def _is_large(node: fx.Node) -> bool:
    if node.target not in _PRODUCTS or node.kwargs:
        return False
    added, left, right = _operands(node)
    if left.dtype != torch.float32 or left.device.type != "cpu":
        return False
    rows, inner, columns = *left.shape[-2:], right.shape[-1]
    sizes: list[Any] = [rows, inner, columns, *left.shape[:-2]]
    if not all(isinstance(size, int) for size in sizes):  # a size that may change
        return False
    if rows * inner * columns < _LARGE or min(rows, inner, columns) < _LEAST:
        return False
    if left.ndim == 3 and left.shape[0] > _MOST:
        return False
    expected = (columns,) if left.ndim == 2 else (left.shape[0], 1, columns)
    return added is None or added.shape == expected


def _operands(node: fx.Node) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the tensors of a product: what is added, `[..., row, inner]` and `[..., inner, column]`."""
    tensors = [argument.meta["val"] for argument in node.args if isinstance(argument, fx.Node)]
    return tensors[0] if _PRODUCTS[node.target] else None, tensors[-2], tensors[-1]


def _replacement(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """Return the node that has the same value."""
    *added, left, right = node.args
    bias = added[0] if added else None
    if _operands(node)[1].ndim == 2:
        return _product(graph, left, right, bias)
    products = [
        _product(graph, *(None if batch is None else call(graph, _aten.select.int, batch, 0, index) for batch in of))
        for index in range(_operands(node)[1].shape[0])
        for of in [(left, right, bias)]
    ]
    alone = [call(graph, _aten.unsqueeze.default, product, 0) for product in products]
    return call(graph, _aten.cat.default, alone, 0)


def _product(graph: fx.Graph, left: Any, right: Any, bias: Any) -> fx.Node:
    """Return the node of one product; `bias` is `[column]` or `[1, column]`, or None."""
    if bias is not None and bias.meta["val"].ndim == 2:
        bias = call(graph, _aten.select.int, bias, 0, 0)
    transposed = call(graph, _aten.permute.default, right, [1, 0])
    return call(graph, torch.ops.rlcore.wide_product.default, left, transposed, bias)


def _offer_operator() -> bool:
    """Register the operator and what the compiler makes of it, once; return whether this version of torch has both."""
    product = look_up(torch.ops.mkldnn, "_linear_pointwise")
    if product is None:
        return False
    if look_up(torch.ops.rlcore, "wide_product") is not None:
        return True
    try:
        from torch._inductor.ir import TensorBox
        from torch._inductor.lowering import register_lowering
        from torch._inductor.mkldnn_ir import LinearUnary
    except ImportError:
        return False
    if list(inspect.signature(LinearUnary.create).parameters) != ["x", "w", "B", "attr", "scalars", "algorithm"]:
        return False

    def wide_product(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
        """Return `left @ right.T + bias`, `[row, column]`, of `[row, inner]` and `[column, inner]`."""
        return product(left, right, bias, "none", [], "")  # type: ignore[no-any-return]

    operator = torch.library.custom_op(
        _NAME,
        wide_product,
        mutates_args=(),
        device_types="cpu",
        schema="(Tensor left, Tensor right, Tensor? bias) -> Tensor",
    )
    operator.register_fake(lambda left, right, bias: left.new_empty(left.shape[0], right.shape[0]))

    # called from C++, as the compiler's own layers of inference are; the way of any operator goes through Python
    def lower(left: Any, right: Any, bias: Any) -> Any:
        return TensorBox.create(LinearUnary.create(left, right, bias, "none", [], ""))  # type: ignore[no-untyped-call]

    register_lowering(torch.ops.rlcore.wide_product.default, type_promotion_kind=None)(lower)
    return True
