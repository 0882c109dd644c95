"""Statistics of metrics: mean, deviation, minimum, maximum and count of the values of a key."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

STATISTICS: Final = ("std", "min", "max", "count")


@dataclass
class Statistics:
    """Running statistics of the values of a key."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """Add values (Chan et al., 1983)."""
        if not values.size:
            return
        count, mean = values.size, float(values.mean())
        total, shift = self.count + count, mean - self.mean
        # squares of deviations from the mean: the difference of large sums of squares would lose its digits
        self.squares += float(np.square(values - mean).sum()) + shift * shift * self.count * count / total
        self.mean += shift * count / total
        self.count = total
        self.least = float(np.minimum(self.least, float(values.min())))
        self.most = float(np.maximum(self.most, float(values.max())))

    def row(self, key: str) -> dict[str, float]:
        """Return the mean as `key`, and with several values the other statistics as `key/…`."""
        if self.count == 1:
            return {key: self.mean}
        figures = (math.sqrt(self.squares / self.count), self.least, self.most, float(self.count))
        return {key: self.mean, **{f"{key}/{name}": value for name, value in zip(STATISTICS, figures, strict=True)}}


class Averages:
    """Running means of the values of an iteration by key; tensors stay on their device."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, Any]) -> None:
        """Add the numbers of an update; leave out tensors of several elements."""
        for key, value in values.items():
            if isinstance(value, numbers.Real) or (isinstance(value, Tensor) and value.numel() == 1):
                self._sums[key] = self._sums[key] + value if key in self._sums else value
                self._counts[key] = self._counts.get(key, 0) + 1

    def means(self) -> dict[str, Any]:
        """Return the mean of each key over the updates that had it."""
        return {key: total / self._counts[key] for key, total in self._sums.items()}


def fetch(values: Mapping[str, list[Any]], *single: dict[str, Any]) -> None:
    """Replace tensors on a device by tensors on the CPU."""
    # in one copy, as each copy would wait for the device
    ends = [of_key for of_key in values.values() if of_key and (_is_away(of_key[0]) or _is_away(of_key[-1]))]
    away: list[tuple[Any, Any]] = [(of_key, i) for of_key in ends for i, value in enumerate(of_key) if _is_away(value)]
    away += [(holder, key) for holder in single for key, value in holder.items() if _is_away(value)]
    if not away:
        return
    tensors = [holder[place].detach() for holder, place in away]
    kind = torch.float32 if tensors[0].device.type == "mps" else torch.float64  # Apple's devices have no float64
    row = torch.cat([tensor.reshape(-1).to(kind) for tensor in tensors]).cpu()
    pieces = torch.split(row, [tensor.numel() for tensor in tensors])
    for (holder, place), tensor, piece in zip(away, tensors, pieces, strict=True):
        holder[place] = piece.reshape(tensor.shape)


def _is_away(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type != "cpu"


def flat(tensors: list[Tensor]) -> Tensor:
    """Return all elements in one dimension."""
    # the usual case, scalars alone, takes one call
    if all(tensor.ndim == 0 for tensor in tensors):
        return torch.stack(tensors).detach()
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def kind_of(value: Any) -> str:
    """Return how a value is read: as a `tensor`, an `array`, a `number`, or `refused`."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray):
        return "array"
    return "number" if isinstance(value, numbers.Real | np.bool_) else "refused"
