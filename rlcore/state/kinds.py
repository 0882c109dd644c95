"""The kinds of objects that a state may hold besides plain data, with their conversion to plain data and back.

A checkpoint names a kind by its mark. Only the kinds in the table `KINDS` are built, so no checkpoint can run code.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.types.foreign import Annotated, TensorDictLike
from rlcore.types.optional import offers

# the trees of the prioritised sampler of TorchRL; their module is compiled, so it is named and not imported
SEGMENT_TREES: Final = ("SumSegmentTreeFp32", "SumSegmentTreeFp64", "MinSegmentTreeFp32", "MinSegmentTreeFp64")
_COMPILED: Final = "torchrl._torchrl"


@dataclass(frozen=True)
class Kind:
    """Kind of object in a state.

    Attributes:
        holds: returns whether an object is of this kind.
        plain: converts an object to plain data: numbers, strings, tensors, lists, dicts, and objects of other kinds.
        build: converts the plain data back to an object.
    """

    holds: Callable[[Any], bool]
    plain: Callable[[Any], Any]
    build: Callable[[Any], Any]


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of torch by its name, such as `float32`.

    Raises:
        ValueError: torch has no such dtype.
    """
    dtype = vars(torch).get(name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch has no dtype {name!r}")
    return dtype


def _annotated(parts: list[Any]) -> OrderedDict[Any, Any]:
    """Return a state dict of torch or tensordict, with its attribute `_metadata` of versions and batch sizes."""
    state = OrderedDict(parts[0])
    state._metadata = parts[1]  # type: ignore[attr-defined]
    return state


def _is_tensordict(value: Any, name: str) -> bool:
    """Return whether a value is of a class of tensordict."""
    # looked up and not imported: while tensordict is not imported, no object of it exists
    library = sys.modules.get("tensordict")
    return library is not None and type(value) is vars(library)[name]


def _plain_tensordict(value: Any) -> dict[str, Any]:
    names = list(value.names) if value._has_names() else None
    return {"entries": dict(value.items()), "size": list(value.batch_size), "device": value.device, "names": names}


def _build_tensordict(parts: Mapping[str, Any]) -> Any:
    from tensordict import TensorDict

    return TensorDict(parts["entries"], batch_size=parts["size"], device=parts["device"], names=parts["names"])


def _build_stack(parts: list[Any]) -> Any:
    from tensordict import LazyStackedTensorDict

    return LazyStackedTensorDict(*parts[0], stack_dim=parts[1])


def _build_non_tensor_stack(parts: list[Any]) -> Any:
    from tensordict import NonTensorStack

    return NonTensorStack(*parts[0], stack_dim=parts[1])


def _build_non_tensor(parts: list[Any]) -> Any:
    from tensordict import NonTensorData

    return NonTensorData(parts[0], batch_size=parts[1], device=parts[2])


def _is_segment_tree(value: Any) -> bool:
    return type(value).__name__ in SEGMENT_TREES and type(value).__module__ == _COMPILED


def _build_segment_tree(parts: list[Any]) -> Any:
    """Return a segment tree by its name and its leaves; setting the leaves fills in the inner nodes."""
    import pkgutil

    name, leaves = parts
    if name not in SEGMENT_TREES:
        raise ValueError(f"{name!r} is no segment tree")
    tree = pkgutil.resolve_name(f"{_COMPILED}:{name}")(leaves.numel())
    tree[torch.arange(leaves.numel())] = leaves
    return tree


KINDS: Final[dict[str, Kind]] = {
    "$size": Kind(lambda value: isinstance(value, torch.Size), list, torch.Size),
    "$device": Kind(lambda value: isinstance(value, torch.device), str, torch.device),
    "$dtype": Kind(
        lambda value: isinstance(value, torch.dtype), lambda value: str(value).removeprefix("torch."), dtype_of
    ),
    "$annotated": Kind(
        lambda value: (
            isinstance(value, OrderedDict) and offers(value, Annotated) and isinstance(value._metadata, Mapping)
        ),
        lambda value: [dict(value), value._metadata],
        _annotated,
    ),
    "$tensordict": Kind(lambda value: _is_tensordict(value, "TensorDict"), _plain_tensordict, _build_tensordict),
    "$stack": Kind(
        lambda value: _is_tensordict(value, "LazyStackedTensorDict"),
        lambda value: [list(value.tensordicts), value.stack_dim],
        _build_stack,
    ),
    "$non_tensor_stack": Kind(
        lambda value: _is_tensordict(value, "NonTensorStack"),
        lambda value: [list(value.tensordicts), value.stack_dim],
        _build_non_tensor_stack,
    ),
    "$non_tensor": Kind(
        lambda value: _is_tensordict(value, "NonTensorData"),
        lambda value: [value.data, value.batch_size, value.device],
        _build_non_tensor,
    ),
    "$segment_tree": Kind(
        _is_segment_tree,
        lambda value: [type(value).__name__, value[torch.arange(len(value))]],
        _build_segment_tree,
    ),
}


def kind_of(value: Any) -> str | None:
    """Return the mark of the kind of an object, or None."""
    return next((mark for mark, kind in KINDS.items() if kind.holds(value)), None)


def is_foreign_mapping(value: Any) -> bool:
    """Return whether a value is a collection of tensordict; one that is of no kind cannot be saved as a dict."""
    return offers(value, TensorDictLike) and not isinstance(value, Tensor | dict)
