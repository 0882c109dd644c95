"""How far returns reach, learnt while collecting; the loss divides the rewards of a minibatch by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.rows import rows, valid_steps
from torch import nn

from rlcore.types import Context
from rlcore_plugin_flashsac.learnt import LearnsFromBatches

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Array


class RewardScale(nn.Module):
    """The part of a model that holds the scale.

    Attributes:
        value: what rewards are divided by, 0-d, float32; 1 before the first reward.
    """

    value: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.ones(()))


class ReturnScale(LearnsFromBatches):
    """Learns the deviation of the discounted returns and the largest of them; leaves batches as they are.

    The scale is `max(sqrt(variance + epsilon), largest / largest_return)`, so that scaled returns fit the support of
    the critics (SimbaV2, arXiv 2502.15280; FlashSAC, arXiv 2604.04539).
    """

    class Config(BaseModel, extra="forbid"):
        """Of the returns."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount of the returns; best that of the loss")
        epsilon: float = Field(1e-8, gt=0, allow_inf_nan=False, description="added to the variance")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        self._gamma = config.gamma
        self._epsilon = config.epsilon
        self._moments = Moments()
        self._largest = 0.0
        self._carried: Any = None  # [env], the returns of the running episodes
        self._largest_return = 1.0
        self._scale: RewardScale | None = None

    def fill(self, scale: RewardScale, largest_return: float) -> None:
        """Keep a part of the model at the scale from now on.

        Args:
            scale: the part.
            largest_return: that the scaled returns may have.
        """
        self._scale, self._largest_return = scale, largest_return
        self._write()

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics, and the returns of the running episodes."""
        return {"moments": self._moments.state_dict(), "largest": self._largest, "carried": self._carried}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics, and the returns of the running episodes."""
        self._moments.load_state_dict(state["moments"])
        self._largest = float(state["largest"])
        carried = state["carried"]
        self._carried = None if carried is None else np.array(carried)
        self._write()

    def _learn(self, batch: TensorDict) -> None:
        reward, done = rows(batch["next", "reward"]).astype(np.float64), rows(batch["next", "done"])
        valid = valid_steps(batch)
        carried: Array = self._carried
        if carried is None or carried.shape != reward.shape[1:]:
            carried = np.zeros(reward.shape[1])
        for each, ended, counts in zip(reward, done, valid, strict=True):
            returns = self._gamma * carried + each
            carried = np.where(counts, np.where(ended, 0.0, returns), carried)
            if counts.any():
                self._moments.add(returns[counts])
                self._largest = max(self._largest, float(np.abs(returns[counts]).max()))
        self._carried = carried

    def _write(self) -> None:
        if self._scale is None:
            return
        deviation = float(self._moments.deviation(self._epsilon))  # 1 before the first reward
        self._scale.value.fill_(max(deviation, self._largest / self._largest_return))
