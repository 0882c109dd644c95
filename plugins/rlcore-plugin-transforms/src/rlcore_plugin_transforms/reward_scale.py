"""Rewards on another scale; episode returns are recorded before and stay as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from rlcore.envs import PassThrough
from rlcore.types import Context

if TYPE_CHECKING:
    from tensordict import TensorDict


class RewardScale(PassThrough):
    """Sets every reward of a batch to `reward * scale + shift`."""

    class Config(BaseModel, extra="forbid"):
        """The linear map."""

        scale: float = Field(1.0, allow_inf_nan=False, description="factor")
        shift: float = Field(0.0, allow_inf_nan=False, description="added to the scaled reward")

    def __init__(self, config: Config, context: Context) -> None:
        self._scale = config.scale
        self._shift = config.shift

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch with the scaled rewards as a new tensor."""
        changed = batch.copy()
        return changed.set(("next", "reward"), batch["next", "reward"] * self._scale + self._shift)
