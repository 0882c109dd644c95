"""Rewards divided by the running standard deviation of the discounted return."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, Field

from rlcore.envs import PassThrough
from rlcore.types import Context
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.rows import rows, valid_steps

if TYPE_CHECKING:
    from typing import Self

    from tensordict import TensorDict

    from rlcore.types import Array


class RewardNorm(PassThrough):
    """Divides the rewards of a batch by `sqrt(variance + epsilon)` of the discounted returns so far, and clips them.

    The return of an env is `R = gamma * R + reward`, over the steps of an episode and from batch to batch. The returns
    of a whole batch are taken into the statistics before its rewards are divided. Masked steps do not count. The mean
    is not subtracted, so that signs stay. Ranks that train together divide by the same deviation, that of the returns
    of all. Episode returns are recorded before and stay as they were.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients: A Case Study on PPO and TRPO",
    arXiv 2005.12729, on reward scaling.
    """

    class Config(BaseModel, extra="forbid"):
        """Returns and limits."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount of the returns; best that of the estimator")
        clip: float = Field(
            10.0, ge=0, allow_inf_nan=False, description="largest absolute value of the result; 0: no limit"
        )
        epsilon: float = Field(1e-8, gt=0, allow_inf_nan=False, description="added to the variance")

    def __init__(self, config: Config, context: Context) -> None:
        self._gamma = config.gamma
        self._clip = config.clip
        self._epsilon = config.epsilon
        self._moments = Moments(context.group)
        self._carried: Array | None = None  # [env], the returns of the running episodes
        self._learning = True

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch with the normalised rewards as a new tensor; a frozen copy does not learn from it."""
        if self._learning:
            self._learn(batch)
            self._moments.agree()
        reward = batch["next", "reward"] / float(self._moments.deviation(self._epsilon))
        if self._clip:
            reward = reward.clamp(-self._clip, self._clip)
        return batch.copy().set(("next", "reward"), reward)

    def frozen(self) -> Self:
        """Return a copy with the statistics of this moment, which it keeps."""
        copied = super().frozen()
        copied._moments = copy.copy(self._moments)
        copied._learning = False
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics, and the returns of the running episodes."""
        return {"moments": self._moments.state_dict(), "carried": self._carried}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics, and the returns of the running episodes."""
        self._moments.load_state_dict(state["moments"])
        carried = state["carried"]
        self._carried = None if carried is None else np.array(carried)

    def forget_episodes(self) -> None:
        """Start every return over: the collector begins new episodes."""
        self._carried = None

    def _learn(self, batch: TensorDict) -> None:
        """Take the returns of the batch into the statistics."""
        reward, done = rows(batch["next", "reward"]).astype(np.float64), rows(batch["next", "done"])
        mask = valid_steps(batch)
        counted, ended = np.where(mask, reward, 0.0), done & mask
        factor = np.where(mask, self._gamma, 1.0)
        carried = self._carried
        if carried is None or carried.shape != reward.shape[1:]:
            carried = np.zeros(reward.shape[1])
        returns = np.empty_like(reward)
        for time in range(len(reward)):
            returns[time] = factor[time] * carried + counted[time]
            carried = np.where(ended[time], 0.0, returns[time])
        self._carried = carried
        self._moments.add(returns[mask])
