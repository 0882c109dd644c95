"""How many steps of its episode came before each step, in the batch and not in what the policy sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from rlcore.types import Context
from rlcore_plugin_transforms.episode_totals import EpisodeTotals

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array


class StepCounter(EpisodeTotals):
    """Adds `step_count`, int64 `[env, time, 1]`: 0 at the first step of an episode; `("next", "step_count")` is 1 more.

    Steps are those of the policy; with `frame_skip` an env takes several frames in each.
    """

    key = "step_count"

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()

    def values(self, batch: TensorDict) -> Array:
        """Return ones."""
        return np.ones(tuple(batch.batch_size)[::-1], dtype=np.int64)
