"""Whether a state fits the component that is to take it: shape, dtype and count of what both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from rlcore.errors import StorageError
from rlcore.restore.optimizers import check_state, first_few


def check(component: Any, state: Any, closely: bool = False) -> None:
    """Refuse a state that does not fit, before the component sees it.

    Args:
        component: as it was built.
        state: from a checkpoint.
        closely: also compare the arrays of components whose form follows from what they met, such as a hook's own.
            Where nothing has changed since, such a state may have grown.

    Raises:
        StorageError: says what differs.
    """
    if isinstance(component, torch.optim.Optimizer):
        check_state(component, state)
    elif isinstance(component, nn.Module):
        _refuse(_differing(component.state_dict(), state))
    elif closely:
        _refuse(line for line in _differing(component.state_dict(), state, empty_may_grow=True))


def check_array(name: str, saved: Any, shape: Sequence[int], what: str = "") -> None:
    """Refuse an array of another shape than the one that it is to fill.

    Args:
        name: of the array.
        saved: from a checkpoint; None fits.
        shape: that it is to have.
        what: the keys of the config that decide the shape.

    Raises:
        StorageError: names both shapes.
    """
    if saved is not None and tuple(saved.shape) != tuple(shape):
        follows = f" ({what})" if what else ""
        raise StorageError(f"{name} is {list(shape)} here, {list(saved.shape)} in the checkpoint{follows}")


def _refuse(lines: Iterator[str]) -> None:
    differences = list(lines)
    if differences:
        raise StorageError(first_few(differences, ", "))


def _differing(here: Any, there: Any, path: str = "", empty_may_grow: bool = False) -> Iterator[str]:
    """Yield a line for each tensor or array that has another form at the same place."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in here:
            if key in there:
                yield from _differing(here[key], there[key], f"{path}.{key}".lstrip("."), empty_may_grow)
    elif isinstance(here, list | tuple) and isinstance(there, list | tuple) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from _differing(*pair, f"{path}.{number}".lstrip("."), empty_may_grow)
    elif isinstance(here, Tensor | np.ndarray) and isinstance(there, Tensor | np.ndarray):
        if (isinstance(here, Tensor) and is_lazy(here)) or (empty_may_grow and _size(here) <= 1):
            return
        if tuple(here.shape) != tuple(there.shape):
            yield f"size mismatch: {path} is {list(here.shape)} here, {list(there.shape)} in the checkpoint"
        elif _dtype(here) != _dtype(there):
            yield f"dtype mismatch: {path} is {_dtype(here)} here, {_dtype(there)} in the checkpoint"


def _size(value: Any) -> int:
    return int(value.numel()) if isinstance(value, Tensor) else int(value.size)


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")
