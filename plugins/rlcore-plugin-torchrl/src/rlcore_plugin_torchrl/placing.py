"""Where the tensors of a checkpoint go, in the words of `torch.load`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import ArgumentTypeError
from rlcore.state import KINDS, kind_of


def placed(
    states: dict[str, Any], map_location: Any, mmap: bool, where_they_are: Collection[str] = ()
) -> dict[str, Any]:
    """Return states with their tensors where a caller of `torch.load` wants them.

    Args:
        states: by component name; their tensors are on the CPU and mapped from files.
        map_location: as in `torch.load`: a device, a mapping of devices, a function of storage and place, or None.
        mmap: whether tensors may stay mapped from files.
        where_they_are: names of those whose tensors are not moved.

    Raises:
        ArgumentTypeError: another kind of `map_location`.
    """
    move = _mover(map_location)
    movers = {name: _mover(None) if name in where_they_are else move for name in states}
    return {name: _moved(state, movers[name], mmap) for name, state in states.items()}


def _mover(map_location: Any) -> Callable[[Tensor], Tensor]:
    if map_location is None:
        return lambda tensor: tensor
    if isinstance(map_location, Mapping):
        map_location = map_location.get("cpu", "cpu")
    if isinstance(map_location, str | torch.device):
        return lambda tensor: tensor.to(map_location)
    if not callable(map_location):
        raise ArgumentTypeError(
            f"map_location: a {type(map_location).__name__}; expected a device, a mapping of devices or a function"
        )

    def move(tensor: Tensor) -> Tensor:
        storage = map_location(tensor.untyped_storage(), "cpu")
        return tensor if storage is None else tensor.to(storage.device)

    return move


def _moved(value: Any, move: Callable[[Tensor], Tensor], mmap: bool) -> Any:
    if isinstance(value, Tensor):
        tensor = move(value)
        return tensor.clone() if tensor is value and not mmap else tensor  # a copy is not mapped
    mark = kind_of(value)
    if mark is not None:
        return KINDS[mark].build(_moved_parts(value, KINDS[mark].plain(value), move, mmap))
    if isinstance(value, Mapping):
        return {key: _moved(item, move, mmap) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(item, move, mmap) for item in value)
    return value


def _moved_parts(value: Any, parts: Any, move: Callable[[Tensor], Tensor], mmap: bool) -> Any:
    """Return the parts of an object of a kind; a TensorDict would take its entries back to its own device."""
    moved = _moved(parts, move, mmap)
    if isinstance(parts, dict) and parts.get("device") is not None:
        moved["device"] = move(torch.empty(0, device=value.device)).device
    return moved
