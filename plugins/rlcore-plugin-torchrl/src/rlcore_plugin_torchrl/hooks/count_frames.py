"""Logs how many frames went through a batch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from rlcore import Sum
from rlcore.types import Context
from rlcore_plugin_torchrl.hooks.entries import valid_mask
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict


class CountFramesLog(StockHook):
    """Logs `n_frames`, the environment frames of all batches so far; steps outside the mask do not count.

    Args:
        frame_skip: environment frames per step.
        log_pbar: whether the progress bar shows it.

    Attributes:
        frame_count: environment frames so far.
        observer: True; it changes nothing.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"pre_steps_log": "__call__"})
    default_name: ClassVar[str] = "count_frames_log"
    observer = True

    def __init__(self, frame_skip: int, log_pbar: bool = False) -> None:
        self.frame_skip = frame_skip
        self.log_pbar = log_pbar
        self.frame_count = 0

    def __call__(self, batch: TensorDict | None) -> dict[str, Any] | None:
        """Count a batch, and return the count; nothing where batches go into a replay buffer in the background."""
        if batch is None:
            return None
        mask = valid_mask(batch)
        steps = batch.numel() if mask is None else int(mask.sum())
        self.frame_count += steps * self.frame_skip
        return {"n_frames": Sum(self.frame_count), "log_pbar": self.log_pbar}

    def state_dict(self) -> dict[str, Any]:
        """Return the count."""
        return {"frame_count": self.frame_count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the count."""
        self.frame_count = state_dict["frame_count"]


class CountFramesLogConfig(BaseModel, extra="forbid"):
    """How frames are counted and shown."""

    frame_skip: int | None = Field(None, ge=1, description="environment frames per step; none: that of the env")
    log_pbar: bool = Field(False, description="show it on the progress bar")


def from_config(config: CountFramesLogConfig, context: Context) -> Any:
    """Return the hook of a config."""
    frame_skip = config.frame_skip or context.env_spec.frame_skip
    return CountFramesLog(frame_skip, config.log_pbar).as_component()
