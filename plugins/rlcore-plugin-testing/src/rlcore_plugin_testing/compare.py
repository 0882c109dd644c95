"""Exact comparison of states, and what a checkpoint or a look at its attributes makes of a component."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

OPAQUE: Final = "<not data>"
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, Path)


def difference(left: Any, right: Any, path: str = "") -> str | None:
    """Return where two values differ, in words, or None when they are equal to the bit.

    Args:
        left: tensors, arrays, numbers, strings, and mappings and sequences of them.
        right: likewise.
        path: prefix of the place in the answer.
    """
    here = path or "the value"
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _mapping_difference(left, right, path)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) != len(right):
            return f"{here} has {len(left)} entries, not {len(right)}"
        found = (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True)))
        return next((where for where in found if where), None)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _tensor_difference(left, right, here)
    if isinstance(left, np.ndarray | np.generic) or isinstance(right, np.ndarray | np.generic):
        return _tensor_difference(_as_tensor(left), _as_tensor(right), here)
    if type(left) is not type(right):
        return f"{here} is a {type(left).__name__}, not a {type(right).__name__}"
    same = left == right or (isinstance(left, float) and left != left and right != right)
    return None if same else f"{here} is {left!r}, not {right!r}"


def _mapping_difference(left: Mapping[Any, Any], right: Mapping[Any, Any], path: str) -> str | None:
    if set(left) != set(right):
        return f"{path or 'the value'} has the keys {list(left)}, not {list(right)}"
    found = (difference(left[key], right[key], f"{path}.{key}" if path else str(key)) for key in left)
    return next((where for where in found if where), None)


def _tensor_difference(left: Any, right: Any, here: str) -> str | None:
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return f"{here} is a {type(left).__name__}, not a {type(right).__name__}"
    if left.dtype != right.dtype or left.shape != right.shape:
        return f"{here} is {left.dtype} {list(left.shape)}, not {right.dtype} {list(right.shape)}"
    if torch.equal(_bytes(left), _bytes(right)):
        return None
    return f"{here} has other values" if left.numel() > 8 else f"{here} is {left.tolist()}, not {right.tolist()}"


def _bytes(tensor: Tensor) -> Tensor:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return plain.reshape(-1).view(torch.uint8) if plain.numel() else plain


def _as_tensor(value: Any) -> Any:
    return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray | np.generic) else value


def snapshot(component: Any) -> dict[str, Any]:
    """Return a copy of the data in the attributes of a component, those of its own helper objects included.

    Tensors, arrays and numbers are data, and so are random generators by their state. What belongs to others, such as
    the trainer or an open file, is not.
    """
    return {name: _data(value, component, {id(component)}) for name, value in vars(component).items()}


def _data(value: Any, owner: Any, seen: set[int]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray | np.generic):
        return np.array(value) if value.dtype != object else OPAQUE
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if isinstance(value, random.Random):
        return value.getstate()
    if id(value) in seen:
        return OPAQUE
    seen = seen | {id(value)}
    if isinstance(value, Mapping):
        return {key: _data(item, owner, seen) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [_data(item, owner, seen) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if _belongs(value, owner) and hasattr(value, "__dict__"):  # by name: one with slots alone has none
        return {name: _data(item, owner, seen) for name, item in vars(value).items()}
    return OPAQUE


def _belongs(value: Any, owner: Any) -> bool:
    """Return whether the class of `value` is from the owner's module or plugin; rlcore as a whole is no plugin."""
    module, own = type(value).__module__, type(owner).__module__
    top = own.partition(".")[0]
    return module == own or (top not in ("rlcore", "builtins") and module.partition(".")[0] == top)
