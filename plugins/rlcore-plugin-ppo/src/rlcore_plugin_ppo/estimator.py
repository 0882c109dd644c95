"""Generalised advantage estimation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, MASK, POLICY_STATE, Context, has_memory

if TYPE_CHECKING:
    import numpy.typing as npt
    from tensordict import TensorDict


class GAE:
    """Advantages and value targets (Schulman et al., 2016, arXiv 1506.02438, eq. 16).

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
        standardise: bool = Field(False, description="standardise advantages over the batch")

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self._gamma = config.gamma
        self._lmbda = config.lmbda
        self._standardise = config.standardise
        model: Any = context.model
        self._critic = model.critic
        self._has_memory = has_memory(model)

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`."""
        following = batch.get("next")
        value = self._values(batch) if self._has_memory else self._critic(batch.get("observation"))
        next_value = self._next_values(value, following)
        terminated, done = following.get("terminated"), following.get("done")
        delta = following.get("reward") + self._gamma * next_value * ~terminated - value
        advantage = discounted_sum(delta, self._gamma * self._lmbda * ~done)
        batch.set("state_value", value)
        batch.set("value_target", advantage + value)
        mask = batch.get(MASK, None)
        batch.set("advantage", _standardised(advantage, mask) if self._standardise else advantage)

    def _next_values(self, value: Tensor, following: TensorDict) -> Tensor:
        """Return the value after each step `[env, time, 1]`.

        Inside an episode it is the value of the following step; the critic runs only for the last observations.
        """
        next_value = torch.zeros_like(value)  # zero after a terminated last step, which nothing below sets
        next_value[:, :-1] = value[:, 1:]
        last = following.get("done").clone()
        last[:, -1] = True
        places = (last & ~following.get("terminated")).squeeze(-1)
        inputs = [following.get("observation")[places]]
        if self._has_memory:  # the last observation of an episode goes with the state after it, and begins none
            state = following.get("policy_state")[places]
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        next_value[places] = self._critic(*inputs)
        return next_value

    def _values(self, batch: TensorDict) -> Tensor:
        """Return the values of a critic with memory: of single steps, each from the state that was stored before it.

        The weights are those of the collection, so these are the values along whole sequences.
        """
        found = self._critic(*(rows(batch.get(key)) for key in ("observation", POLICY_STATE, FIRST)))
        return found.unflatten(0, batch.batch_size[::-1]).transpose(0, 1)  # type: ignore[no-any-return]


def discounted_sum(values: Tensor, discounts: Tensor) -> Tensor:
    """Return `s[t] = values[t] + discounts[t] * s[t + 1]` along time, both `[env, time, 1]`.

    The recursion runs on the CPU: its steps are too small for a kernel each.
    """
    by_time = values.squeeze(-1).t().cpu().numpy()
    factors = discounts.squeeze(-1).t().cpu().numpy()
    result = _scan_one(by_time, factors) if by_time.shape[1] == 1 else _scan(by_time, factors)
    return torch.from_numpy(result).t().unsqueeze(-1).to(values.device)


def _scan(values: npt.NDArray[np.float32], factors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    result = np.empty_like(values)
    running = np.zeros_like(values[0])
    for time in range(len(values) - 1, -1, -1):
        running = values[time] + factors[time] * running
        result[time] = running
    return result


def _scan_one(values: npt.NDArray[np.float32], factors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Do the same for one env, where Python numbers are several times as fast as arrays of one."""
    running, result = 0.0, []
    for value, factor in zip(reversed(values[:, 0].tolist()), reversed(factors[:, 0].tolist()), strict=True):
        running = value + factor * running
        result.append(running)
    result.reverse()
    return np.asarray(result, dtype=values.dtype)[:, None]


def _standardised(advantage: Tensor, mask: Tensor | None) -> Tensor:
    counted = advantage if mask is None else advantage[mask]
    return (advantage - counted.mean()) / counted.std().clamp(min=1e-6)
