"""The hook `env-log`: what a `VecEnv` says of itself in `extras["log"]`, as metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch
from pydantic import BaseModel
from torch import Tensor

from rlcore import hookimpl
from rlcore_plugin_rsl_rl.env import vec_env_of

if TYPE_CHECKING:
    from rlcore import Context


class Sums:
    """Sums of what is logged, each on the device where it is."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def add(self, extras: Mapping[str, Any]) -> None:
        """Take in `extras["episode"]` or else `extras["log"]` of a step; of a tensor all elements count."""
        for key, value in extras.get("episode", extras.get("log", {})).items():
            # summed at once: the simulator may write the next numbers over these
            total = value.sum(dtype=torch.float32) if isinstance(value, Tensor) else float(value)
            self._sums[key] = self._sums.get(key, 0.0) + total
            self._counts[key] = self._counts.get(key, 0) + (value.numel() if isinstance(value, Tensor) else 1)

    def take(self) -> dict[str, Any]:
        """Return the means, and begin again."""
        means = {key: total / self._counts[key] for key, total in self._sums.items() if self._counts[key]}
        self._sums, self._counts = {}, {}
        return means


class EnvLog:
    """Logs the mean of each number that the env logs, once per batch; no number leaves the device before a row does.

    Names are rsl_rl's: a key with a slash is the name, without the slash in front, and another one comes behind
    `Episode/`.

    Raises:
        ConfigError: the env is none of this plugin.

    Attributes:
        observer: True; it only watches.
        takes_columns: True; it reads no batch.
    """

    observer: Final = True
    takes_columns: Final = True

    class Config(BaseModel, extra="forbid"):
        """It has no keys."""

    def __init__(self, config: Config, context: Context) -> None:
        self._sums = vec_env_of(context.env, "[[hook]] env-log").log = Sums()

    @hookimpl
    def pre_steps_log(self) -> dict[str, Any]:
        """Return the means over the batch."""
        return {key.strip("/") if "/" in key else f"Episode/{key}": mean for key, mean in self._sums.take().items()}
