"""Logs a statistic of an entry of each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

import torch
from pydantic import BaseModel, Field

from rlcore.errors import HookArgumentError, HookError, did_you_mean
from rlcore.types import Context, Key
from rlcore_plugin_torchrl.hooks.entries import REWARD, as_key, valid_entry
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import ScriptTrainer

Reduction = Literal["mean", "sum", "min", "max"]

_REDUCTIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = MappingProxyType(
    {"mean": lambda values: values.float().mean(), "sum": torch.sum, "min": torch.min, "max": torch.max}
)


class LogScalar(StockHook):
    """Logs a statistic of an entry over the valid steps of a batch. Values stay on their device until they are written.

    Args:
        key: of the entry.
        logname: of the metric; default: the key as text.
        log_pbar: whether the progress bar shows it.
        include_std: whether `<logname>_std`, the standard deviation, is logged too.
        reduction: `mean`, `sum`, `min` or `max`.

    Raises:
        HookError: there is no such reduction.

    Attributes:
        observer: True; it changes nothing.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"pre_steps_log": "__call__"})
    observer = True

    def __init__(
        self,
        key: Key = REWARD,
        logname: str | None = None,
        log_pbar: bool = False,
        include_std: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        if reduction not in _REDUCTIONS:
            reductions = get_args(Reduction)
            raise HookArgumentError(
                f"{type(self).__name__}: reduction = {reduction!r}: expected one of {', '.join(reductions)}"
                f"{did_you_mean(str(reduction), reductions)}"
            )
        self.key = key
        self.logname = logname if logname is not None else str(key)
        self.log_pbar = log_pbar
        self.include_std = include_std
        self.reduction = reduction

    def register(self, trainer: ScriptTrainer, name: str | None = None) -> None:
        """Register it at `pre_steps_log`, as `log_<logname>` unless a name is given."""
        super().register(trainer, name or f"log_{self.logname}")

    def __call__(self, batch: TensorDict | None) -> dict[str, Any] | None:
        """Return the statistics of a batch; nothing where batches go into a replay buffer in the background.

        Raises:
            HookError: the batch has no such entry, or no valid step.
        """
        if batch is None:
            return None
        values = valid_entry(batch, self.key, self)
        if not values.numel():
            raise HookError(f"{type(self).__name__}: the batch has no valid step of which to log {self.key!r}")
        metrics: dict[str, Any] = {self.logname: _REDUCTIONS[self.reduction](values), "log_pbar": self.log_pbar}
        if self.include_std and values.numel() > 1:
            metrics[f"{self.logname}_std"] = values.float().std()
        return metrics


class LogReward(LogScalar):
    """Logs the mean reward of a step; the older name and arguments of `LogScalar`.

    Args:
        logname: of the metric.
        log_pbar: whether the progress bar shows it.
        reward_key: of the rewards; default: `("next", "reward")`.
    """

    def __init__(self, logname: str = "r_training", log_pbar: bool = False, reward_key: Key | None = None) -> None:
        super().__init__(reward_key or REWARD, logname, log_pbar, include_std=False)


class LogScalarConfig(BaseModel, extra="forbid"):
    """What is logged, and how it is shown."""

    key: str | list[str] = Field(["next", "reward"], description="the entry; a nested one is a list of names")
    logname: str | None = Field(None, description="name of the metric; none: the key")
    log_pbar: bool = Field(False, description="show it on the progress bar")
    include_std: bool = Field(True, description="log the standard deviation too")
    reduction: Reduction = Field("mean", description="of the values of a batch")


def from_config(config: LogScalarConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return LogScalar(**{**dict(config), "key": as_key(config.key)}).as_component()
