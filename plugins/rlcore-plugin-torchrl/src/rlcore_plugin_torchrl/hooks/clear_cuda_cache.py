"""Gives memory of the CUDA cache back at intervals."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, Field

from rlcore.errors import HookArgumentError
from rlcore.types import Context
from rlcore_plugin_torchrl.hooks.stock import StockHook


class ClearCudaCache(StockHook):
    """Empties the CUDA cache at every so manyth call; without CUDA it does nothing.

    Args:
        interval: in calls.

    Raises:
        HookError: the interval is not positive.

    Attributes:
        count: of the calls so far.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"pre_optim_steps": "__call__"})
    default_name: ClassVar[str] = "clear_cuda_cache"

    def __init__(self, interval: int) -> None:
        if interval < 1:
            raise HookArgumentError(f"ClearCudaCache: interval = {interval}: expected a positive number of calls")
        self.interval = interval
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Count, and empty the cache when the interval is over; takes what any destination hands to it."""
        self.count += 1
        if self.count % self.interval == 0:
            torch.cuda.empty_cache()

    def state_dict(self) -> dict[str, Any]:
        """Return the count."""
        return {"count": self.count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the count."""
        self.count = state_dict["count"]


class ClearCudaCacheConfig(BaseModel, extra="forbid"):
    """How often."""

    interval: int = Field(100, ge=1, description="iterations between two clearings")


def from_config(config: ClearCudaCacheConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return ClearCudaCache(config.interval).as_component()
