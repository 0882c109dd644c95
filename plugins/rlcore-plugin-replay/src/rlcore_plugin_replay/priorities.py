"""The priorities of transitions, on the device of the rows or in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rlcore_plugin_replay.host_tree import HostSumTree
from rlcore_plugin_replay.sum_tree import SumTree


class Priorities(Protocol):
    """Priorities by place, `(|error| + eps) ** alpha`; 0 where no transition lies."""

    def begin(self, first: int, count: int) -> None:
        """Give `count` transitions from place `first` on the highest priority so far; place 0 follows the last."""
        ...

    def begin_at(self, index: Tensor) -> None:
        """Give transitions at places `[number]` the highest priority so far."""
        ...

    def clear(self, index: Tensor) -> None:
        """Remove transitions at places `[number]`."""
        ...

    def draw(self, size: int, generator: torch.Generator, beta: float) -> tuple[Tensor, Tensor]:
        """Return places, int64 `[sample]`, and importance weights, float32 `[sample, 1]`."""
        ...

    def set(self, index: Tensor, errors: Tensor) -> None:
        """Set the priorities at places `[sample]`; an error that is not finite counts as the highest so far."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all priorities, and the highest."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the priorities."""
        ...


class HostPriorities:
    """Keeps priorities in host memory."""

    def __init__(self, capacity: int, alpha: float, eps: float) -> None:
        self._capacity = capacity
        self._alpha = alpha
        self._eps = eps
        self._tree = HostSumTree(capacity)
        self._highest = 1.0

    def begin(self, first: int, count: int) -> None:
        """Give `count` transitions from place `first` on the highest priority so far."""
        end = first + count
        self._tree.fill(first, min(end, self._capacity), self._highest)
        if end > self._capacity:
            self._tree.fill(0, end - self._capacity, self._highest)

    def begin_at(self, index: Tensor) -> None:
        """Give transitions at places the highest priority so far."""
        self._tree[index.numpy(force=True)] = np.full(len(index), self._highest)

    def clear(self, index: Tensor) -> None:
        """Remove transitions at places."""
        self._tree[index.numpy(force=True)] = np.zeros(len(index))

    def draw(self, size: int, generator: torch.Generator, beta: float) -> tuple[Tensor, Tensor]:
        """Return places and importance weights."""
        uniform = torch.rand(size, generator=generator, dtype=torch.float64).numpy()
        index = self._tree.draw((np.arange(size) + uniform) / size)
        priority = self._tree[index]
        weight = (priority / priority.min()) ** -beta
        return torch.from_numpy(index), torch.from_numpy(weight.astype(np.float32)[:, np.newaxis])

    def set(self, index: Tensor, errors: Tensor) -> None:
        """Set the priorities at places `[sample]`."""
        priority = np.abs(errors.numpy(force=True).astype(np.float64).reshape(-1))
        priority += self._eps
        priority **= self._alpha
        highest = float(priority.max())
        if not np.isfinite(highest):
            priority[~np.isfinite(priority)] = self._highest
            highest = float(priority.max())
        self._tree[index.numpy(force=True)] = priority
        self._highest = max(self._highest, highest)

    def state_dict(self) -> dict[str, Any]:
        """Return all priorities, and the highest."""
        return {"priorities": self._tree.state_dict(), "highest": torch.tensor(self._highest, dtype=torch.float64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the priorities."""
        self._tree.load_state_dict(state["priorities"])
        self._highest = float(state["highest"])


class TensorPriorities:
    """Keeps priorities on a device, without a copy to the host."""

    def __init__(self, capacity: int, alpha: float, eps: float, device: torch.device) -> None:
        self._capacity = capacity
        self._alpha = alpha
        self._eps = eps
        self._device = device
        self._tree = SumTree(capacity, device)
        self._highest = torch.ones((), dtype=torch.float64, device=device)

    def begin(self, first: int, count: int) -> None:
        """Give `count` transitions from place `first` on the highest priority so far."""
        places = torch.arange(first, first + count, device=self._device) % self._capacity
        self._tree[places] = self._highest.expand(count)

    def begin_at(self, index: Tensor) -> None:
        """Give transitions at places the highest priority so far."""
        self._tree[index] = self._highest.expand(len(index))

    def clear(self, index: Tensor) -> None:
        """Remove transitions at places."""
        self._tree[index] = torch.zeros(len(index), dtype=torch.float64, device=self._device)

    def draw(self, size: int, generator: torch.Generator, beta: float) -> tuple[Tensor, Tensor]:
        """Return places and importance weights."""
        uniform = torch.rand(size, generator=generator, device=self._device, dtype=torch.float64)
        index = self._tree.draw((torch.arange(size, device=self._device) + uniform) / size)
        priority = self._tree[index]
        weight = (priority / priority.min()) ** -beta
        return index, weight.to(torch.float32).unsqueeze(-1)

    def set(self, index: Tensor, errors: Tensor) -> None:
        """Set the priorities at places `[sample]`."""
        priority = (errors.to(self._device, torch.float64).reshape(-1).abs() + self._eps) ** self._alpha
        priority = torch.where(priority.isfinite(), priority, self._highest)
        self._tree[index.to(self._device)] = priority
        self._highest = torch.maximum(self._highest, priority.max())

    def state_dict(self) -> dict[str, Any]:
        """Return all priorities, and the highest."""
        return {"priorities": self._tree.state_dict(), "highest": self._highest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the priorities."""
        self._tree.load_state_dict(state["priorities"])
        self._highest = state["highest"].to(self._device).clone()


def new_priorities(capacity: int, alpha: float, eps: float, device: torch.device) -> Priorities:
    """Return priorities on the device of the rows; all are 0."""
    if device.type == "cpu":
        return HostPriorities(capacity, alpha, eps)
    return TensorPriorities(capacity, alpha, eps, device)
