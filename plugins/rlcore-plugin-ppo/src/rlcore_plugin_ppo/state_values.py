"""The values of the critic before and after the steps of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, has_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensordict import TensorDict


class StateValues:
    """Computes the values of a critic, with memory or without.

    Args:
        model: has a critic.
    """

    def __init__(self, model: Any) -> None:
        self._critic = model.critic
        self._has_memory = has_memory(model)

    def before(self, batch: TensorDict) -> Tensor:
        """Return the values of the observations `[env, time, 1]`.

        A critic with memory takes each step from the state that was stored before it. With the weights of the
        collection, the values are those of a pass over whole sequences.
        """
        if not self._has_memory:
            return self._critic(batch.get("observation"))  # type: ignore[no-any-return]
        value = self._critic(*(rows(batch.get(key)) for key in ("observation", POLICY_STATE, FIRST)))
        return value.unflatten(0, batch.batch_size[::-1]).transpose(0, 1)  # type: ignore[no-any-return]

    def after(self, value: Tensor, following: TensorDict) -> Tensor:
        """Return the value after each step `[env, time, 1]`; zero after a terminated step.

        Inside an episode it is the value before the next step, so on the CPU the critic runs for last observations
        alone.

        Args:
            value: the values before the steps.
            following: the entries under `next`.
        """
        next_value = torch.zeros_like(value)  # not `empty_like`: nothing below sets a terminated last step
        next_value[:, :-1] = value[:, 1:]
        terminated: Tensor = following.get("terminated")
        last = following.get("done").clone()
        last[:, -1] = True
        places = (last & ~terminated).squeeze(-1)
        if value.device.type != "cpu":  # how many there are would be waited for, so the critic runs for every step
            everywhere = self._of(following, lambda entry: entry.flatten(0, 1))
            return torch.where(places.unsqueeze(-1), everywhere.reshape(value.shape), next_value) * ~terminated
        if places.any():  # some networks refuse a batch without rows
            next_value[places] = self._of(following, lambda entry: entry[places])
        return next_value * ~terminated

    def _of(self, following: TensorDict, chosen: Callable[[Any], Any]) -> Tensor:
        """Return the values of what chosen steps led to, `[step, 1]`."""
        inputs = [chosen(following.get("observation"))]
        if self._has_memory:  # a last observation has the state after its step, and does not begin an episode
            state = chosen(following.get("policy_state"))
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        return self._critic(*inputs)  # type: ignore[no-any-return]
