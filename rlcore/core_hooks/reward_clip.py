"""Clips rewards before they reach the buffer; episode returns are recorded before and stay as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from rlcore.hooks.specs import hookimpl
from rlcore.types.context import Context

if TYPE_CHECKING:
    from tensordict import TensorDict


class RewardClip:
    """Clips every reward of a batch to `[-limit, limit]`."""

    writes = ()  # no entry that was not there

    class Config(BaseModel, extra="forbid"):
        """How far rewards may go."""

        limit: float = Field(1.0, gt=0, description="largest absolute reward")

    def __init__(self, config: Config, context: Context) -> None:
        self._limit = config.limit

    @hookimpl
    def batch_process(self, batch: TensorDict) -> TensorDict:
        """Return the batch with clipped rewards."""
        reward = batch["next", "reward"].clamp(-self._limit, self._limit)
        return batch.set(("next", "reward"), reward)
