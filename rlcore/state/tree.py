"""Converting a state to JSON with named tensors, and back; nothing is ever unpickled.

A state may hold None, booleans, numbers, strings, tensors, NumPy arrays and scalars, lists, tuples and dicts of them,
and the objects of `kinds.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.state.kinds import KINDS, is_foreign_mapping, kind_of


def flatten(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return a state as JSON, with every tensor replaced by its name and put into `tensors`.

    Args:
        value: the state.
        path: prefix of the names.
        tensors: filled by this call.

    Raises:
        StorageError: the state holds an object of another type; the message names its path.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # JSON has no infinity and no NaN
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.generic):
        return flatten(value.item(), path, tensors)
    if isinstance(value, Tensor):
        return {"$tensor": _put(value.detach(), path, tensors)}
    if isinstance(value, np.ndarray):
        return {"$array": _put(_as_tensor(value, path), path, tensors)}
    if isinstance(value, list):
        return [flatten(item, f"{path}/{index}", tensors) for index, item in enumerate(value)]
    if type(value) not in (dict, tuple):  # a shortcut: most values are a dict or a tuple, and neither is a kind
        mark = kind_of(value)
        if mark is not None:
            return {mark: _flatten_kind(mark, value, path, tensors)}
    if isinstance(value, tuple):
        return {"$tuple": flatten(list(value), path, tensors)}
    if isinstance(value, Mapping) and not is_foreign_mapping(value):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: flatten(item, f"{path}/{key}", tensors) for key, item in value.items()}
        return {"$items": [[flatten(k, "", {}), flatten(v, f"{path}/{k}", tensors)] for k, v in value.items()]}
    raise StorageError(
        f"the state at {path!r} holds a {type(value).__name__}, which a checkpoint cannot carry; a state is made of "
        "numbers, strings, tensors, arrays, and lists, tuples and dicts of them"
    )


def _flatten_kind(mark: str, value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return an object of a kind as JSON; tensors in a state dict are named as in a plain dict."""
    plain = KINDS[mark].plain(value)
    if mark == "$annotated":
        entries, notes = plain
        return [flatten(entries, path, tensors), flatten(notes, f"{path}/_metadata", tensors)]
    return flatten(plain, path, tensors)


def _as_tensor(array: np.ndarray[Any, Any], path: str) -> Tensor:
    try:
        # a copy, as torch takes no negative strides and warns of arrays that are not writable
        return torch.from_numpy(np.array(array, order="C"))
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"the state at {path!r} is an array of {array.dtype}, which a checkpoint cannot carry: {error}"
        ) from None


def _put(tensor: Tensor, path: str, tensors: dict[str, Tensor]) -> str:
    """Store a tensor under `path`, or with a number where another tensor has this name; return the name."""
    # keys that hold a slash can give two tensors one path
    name, number = path, 1
    while name in tensors:
        number += 1
        name = f"{path}#{number}"
    tensors[name] = tensor
    return name


def unflatten(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the state of a tree made by `flatten`.

    Raises:
        StorageError: a tensor is missing, or an object of a kind cannot be built.
    """
    if isinstance(tree, list):
        return [unflatten(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1:
        ((tag, value),) = tree.items()
        if tag == "$float":
            return float(value)
        if tag in ("$tensor", "$array"):
            if value not in tensors:
                raise StorageError(f"the checkpoint has no tensor {value!r}")
            return tensors[value] if tag == "$tensor" else tensors[value].numpy()
        if tag == "$tuple":
            return tuple(unflatten(value, tensors))
        if tag == "$items":
            return {unflatten(k, tensors): unflatten(v, tensors) for k, v in value}
        if tag in KINDS:
            return _built(tag, unflatten(value, tensors))
        if tag.startswith("$"):
            raise StorageError(f"the checkpoint holds a {tag[1:]!r}, which this version of rlcore does not know")
    return {key: unflatten(value, tensors) for key, value in tree.items()}


def _built(mark: str, plain: Any) -> Any:
    try:
        return KINDS[mark].build(plain)
    except ImportError as error:
        raise StorageError(f"the checkpoint holds a {mark[1:]!r}, and {error.name or error} is not here") from error
    except Exception as error:  # a manipulated state raises errors of any kind
        raise StorageError(f"the checkpoint holds a {mark[1:]!r} that cannot be built: {error}") from error


def tensor_names(tree: Any) -> tuple[str, ...]:
    """Return the names of the tensors of a tree, in the order of `flatten`."""
    names: list[str] = []
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and value.keys() <= {"$tensor", "$array"}:
            names += value.values()
        elif isinstance(value, list | dict):
            waiting += reversed(value if isinstance(value, list) else list(value.values()))
    return tuple(names)


def through_checkpoint(state: Any) -> Any:
    """Return a state as a checkpoint would restore it, with copies of its tensors.

    Raises:
        StorageError: the state holds an object that a checkpoint cannot hold.
    """
    tensors: dict[str, Tensor] = {}
    tree = json.loads(json.dumps(flatten(state, "state", tensors)))
    return unflatten(tree, {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()})
