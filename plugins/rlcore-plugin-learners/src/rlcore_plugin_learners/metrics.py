"""What an update logs: values kept as they are while it runs, and reduced to one number each at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_learners.states import as_arrays

Reduce = Literal["mean", "sum", "min", "max", "item", "lifetime_sum", "item_series"]
Key = tuple[str, ...]

_REDUCTIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "mean": Tensor.mean,
    "sum": Tensor.sum,
    "min": Tensor.amin,
    "max": Tensor.amax,
    "item": lambda values: values[-1],
    "lifetime_sum": Tensor.sum,
}


@dataclass
class _Stat:
    reduce: Reduce
    window: int | None
    values: list[Any] = field(default_factory=list)
    total: float = 0.0

    def now(self) -> Any:
        """Return the number, or the series."""
        if not self.values:
            return self.total if self.reduce == "lifetime_sum" else float("nan")
        if self.reduce == "item_series":
            return np.concatenate([np.atleast_1d(as_arrays(value)) for value in self.values])
        if isinstance(self.values[0], Tensor):
            values = torch.stack([torch.as_tensor(value) for value in self.values]).float()
        else:
            values = torch.tensor([float(value) for value in self.values], dtype=torch.float64)
        return self.total + float(_REDUCTIONS[self.reduce](values))

    def end(self) -> Any:
        """Return the number, and begin the next."""
        number = self.now()
        if self.reduce == "lifetime_sum":
            self.total = number
        if self.window is None or self.reduce == "lifetime_sum":
            self.values = []
        return number


class MetricsLogger:
    """Values by key; a key is a name, or several for nested results: `(module_id, "entropy")`."""

    def __init__(self) -> None:
        self._stats: dict[Key, _Stat] = {}

    def log_value(self, key: str | Key, value: Any, *, reduce: Reduce = "mean", window: int | None = None) -> None:
        """Log a value; tensors stay on their device until the end of the update.

        Args:
            key: one name, or several.
            value: a number or a 0-d tensor; for `item_series` also a tensor `[row]`.
            reduce: what becomes of the values of an update; `item` keeps the last, `lifetime_sum` adds those of all
                updates, `item_series` keeps numbers and tensors `[row]` as one array.
            window: reduce the last so many values instead, also of earlier updates.
        """
        if isinstance(key, str):
            key = (key,)
        stat = self._stats.get(key)
        if stat is None:
            if reduce not in get_args(Reduce):
                raise ConfigError(f"metrics: no reduction {reduce!r}{did_you_mean(reduce, get_args(Reduce))}")
            stat = self._stats[key] = _Stat(reduce, window)
        stat.values.append(value.detach() if isinstance(value, Tensor) else value)
        most = 1 if stat.reduce == "item" else window
        if most is not None and len(stat.values) > most:
            del stat.values[0]

    def log_dict(
        self, values: Mapping[str, Any], *, key: str | Key = (), reduce: Reduce = "mean", window: int | None = None
    ) -> None:
        """Log several values below a key."""
        above = (key,) if isinstance(key, str) else key
        for name, value in values.items():
            self.log_value((*above, name), value, reduce=reduce, window=window)

    def has(self, key: str | Key) -> bool:
        """Return whether there is a value to reduce under a key."""
        stat = self._stats.get((key,) if isinstance(key, str) else key)
        return stat is not None and bool(stat.values)

    def peek(self, key: str | Key) -> Any:
        """Return what a key would be reduced to now.

        Raises:
            ConfigError: nothing was logged under it.
        """
        key = (key,) if isinstance(key, str) else key
        if key not in self._stats:
            raise ConfigError(f"metrics: nothing was logged under {'/'.join(key)!r}")
        return self._stats[key].now()

    def reduce(self) -> dict[str, Any]:
        """Return all numbers, nested by key, and begin the next update."""
        results: dict[str, Any] = {}
        for key, stat in self._stats.items():
            if not stat.values and stat.reduce != "lifetime_sum":
                continue
            place = results
            for name in key[:-1]:
                place = place.setdefault(name, {})
            place[key[-1]] = stat.end()
        return results

    @staticmethod
    def peek_results(results: Any) -> Any:
        """Return results as they are: what `reduce` returned are numbers."""
        return results

    def delete(self, *key: str) -> None:
        """Forget a key and all below it, such as the id of a module."""
        self._stats = {name: stat for name, stat in self._stats.items() if name[: len(key)] != key}

    def drop(self) -> None:
        """Forget what an update logged that failed."""
        for stat in self._stats.values():
            stat.values = []

    def get_state(self) -> dict[str, Any]:
        """Return what goes on from update to update."""
        return {
            "/".join(key): {
                "reduce": stat.reduce,
                "window": stat.window,
                "total": stat.total,
                "values": [float(value) for value in stat.values],
            }
            for key, stat in self._stats.items()
            if stat.values or stat.total
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self._stats = {
            tuple(key.split("/")): _Stat(entry["reduce"], entry["window"], list(entry["values"]), entry["total"])
            for key, entry in state.items()
        }
