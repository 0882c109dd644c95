"""The return of the running episode so far, in the batch and not in what the policy sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from rlcore.types import Context
from rlcore_plugin_transforms.episode_totals import EpisodeTotals
from rlcore_plugin_transforms.rows import rows

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array


class RewardSum(EpisodeTotals):
    """Adds `episode_reward`, float32 `[env, time, 1]`: the rewards of the episode before each step, without discount.

    `("next", "episode_reward")` has the reward of the step too. Rewards are those that the transforms before it leave.
    """

    key = "episode_reward"

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()

    def values(self, batch: TensorDict) -> Array:
        """Return the rewards in double precision."""
        return rows(batch["next", "reward"]).astype(np.float64)

    def result(self, totals: Array) -> Array:
        """Return sums in single precision, as rewards are."""
        return totals.astype(np.float32)
