"""Generalised advantage estimation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.types import MASK, Context, Estimator
from rlcore_plugin_ppo.state_values import StateValues

if TYPE_CHECKING:
    import numpy.typing as npt
    from tensordict import TensorDict

# an array or a tensor
Numbers = TypeVar("Numbers", "npt.NDArray[np.float32]", Tensor)


class GAE(Estimator):
    """Estimates advantages and value targets (Schulman et al., 2016, arXiv 1506.02438, eq. 16).

    The value after a terminated step is zero; after a truncated one it is the critic's value of the last observation.
    The value target is the advantage, before it is standardised, plus the state value.
    """

    requires = ("critic",)
    takes_memory = True

    class Config(BaseModel, extra="forbid"):
        """The two discounts, and when to estimate."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        lmbda: float = Field(0.95, ge=0, le=1, description="weight of longer returns")
        every: Literal["batch", "epoch"] = Field("batch", description="estimate once, or again before each epoch")
        standardise: bool = Field(False, description="standardise advantages over a batch of two steps or more")

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self._gamma = config.gamma
        self._lmbda = config.lmbda
        self._standardise = config.standardise
        self._values = StateValues(context)

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`."""
        following = batch.get("next")
        value = self._values.before(batch)
        delta = following.get("reward") + self._gamma * self._values.after(value, following) - value
        advantage = discounted_sum(delta, self._gamma * self._lmbda * ~following.get("done"))
        batch.set("state_value", value)
        batch.set("value_target", advantage + value)
        mask = batch.get(MASK, None)
        batch.set("advantage", _standardised(advantage, mask) if self._standardise else advantage)


def discounted_sum(values: Tensor, discounts: Tensor) -> Tensor:
    """Return `s[t] = values[t] + discounts[t] * s[t + 1]` along time, `[env, time, 1]`."""
    by_time, factors = values.squeeze(-1).t(), discounts.squeeze(-1).t()
    if values.device.type != "cpu":  # which is not waited for; for one env in the precision of `_scan_one`
        exact = by_time.double() if by_time.shape[1] == 1 else by_time
        return _scan(exact, factors, torch.empty_like(by_time)).t().unsqueeze(-1)
    arrays = by_time.numpy(), factors.numpy()
    result = _scan_one(*arrays) if by_time.shape[1] == 1 else _scan(*arrays, np.empty_like(arrays[0]))
    return torch.from_numpy(result).t().unsqueeze(-1)


def _scan(values: Numbers, factors: Numbers, result: Numbers) -> Numbers:
    """Write the sums into the result, from its last row to the first."""
    running: Any = 0.0
    for time in range(len(values) - 1, -1, -1):
        running = values[time] + factors[time] * running
        result[time] = running
    return result


def _scan_one(values: npt.NDArray[np.float32], factors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the sums for one env; Python numbers are several times as fast as arrays of one."""
    running, result = 0.0, []
    for value, factor in zip(reversed(values[:, 0].tolist()), reversed(factors[:, 0].tolist()), strict=True):
        running = value + factor * running
        result.append(running)
    result.reverse()
    return np.asarray(result, dtype=values.dtype)[:, None]


def _standardised(advantage: Tensor, mask: Tensor | None) -> Tensor:
    valid = advantage if mask is None else advantage[mask]
    if valid.numel() < 2:  # the deviation of a single number is not defined
        return advantage
    return (advantage - valid.mean()) / valid.std().clamp(min=1e-6)
