"""Rewards divided by the running standard deviation of the discounted return."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore.envs import PassThrough
from rlcore.types import Context, offers
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.rows import rows, valid_steps

if TYPE_CHECKING:
    from typing import Self

    from tensordict import TensorDict


class _OnDevice(Protocol):
    """A collector whose batches never were on the host."""

    most_truncations: int


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
        self._carried: Any = None  # [env], the returns of the running episodes
        # the collector is built later; a function is not copied with the transform, and the run would be
        self._collector: Callable[[], Any] = lambda: context.built.get("collector")
        self._learning = True

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch with the normalised rewards as a new tensor; a frozen copy does not learn from it."""
        reward, there = batch["next", "reward"], self._on_device
        if self._learning:
            (self._learn_there if there else self._learn)(batch)
            self._moments.agree()
        moments, epsilon = self._moments, self._epsilon
        # a tensor without dimensions leaves the precision as it is, as a number does
        reward = reward / (moments.figures(epsilon, reward)[1] if there else float(moments.deviation(epsilon)))
        if self._clip:
            reward = reward.clamp(-self._clip, self._clip)
        return batch.copy().set(("next", "reward"), reward)

    def frozen(self) -> Self:
        """Return a copy with the statistics of this moment, which it keeps."""
        copied = super().frozen()
        copied._moments = copy.copy(self._moments.arrays())
        copied._learning = False
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics, and the returns of the running episodes."""
        carried = self._carried
        carried = carried.cpu().numpy() if hasattr(carried, "cpu") else carried
        return {"moments": self._moments.state_dict(), "carried": carried}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics, and the returns of the running episodes."""
        self._moments.load_state_dict(state["moments"])
        carried = state["carried"]
        self._carried = None if carried is None else np.array(carried)

    def forget_episodes(self) -> None:
        """Start every return over: the collector begins new episodes."""
        self._carried = None

    @cached_property
    def _on_device(self) -> bool:
        """Whether batches never are on the host; masks, as of envs that only reset, are then none."""
        return offers(self._collector(), _OnDevice)

    def _learn_there(self, batch: TensorDict) -> None:
        """Take the returns of the batch into the statistics, without a wait for its device."""
        reward, done = (batch["next", name].squeeze(-1).t() for name in ("reward", "done"))
        reward = reward.double()
        carried = self._carried
        if carried is None or carried.shape != reward.shape[1:]:
            carried = torch.zeros_like(reward[0])
        carried = torch.as_tensor(carried, device=reward.device)  # an array, after a resume
        returns = []
        for time in range(len(reward)):
            returns.append(self._gamma * carried + reward[time])
            carried = torch.where(done[time], 0.0, returns[time])
        self._carried = carried
        self._moments.add_tensors(torch.cat(returns))

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
