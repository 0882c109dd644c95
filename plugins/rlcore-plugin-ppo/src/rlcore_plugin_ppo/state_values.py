"""The values of the critic before and after the steps of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, has_memory

if TYPE_CHECKING:
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

        Inside an episode it is the value before the next step, so the critic runs for last observations alone.

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
        if not places.any():  # some networks refuse a batch without rows
            return next_value * ~terminated
        inputs = [following.get("observation")[places]]
        if self._has_memory:  # a last observation has the state after its step, and does not begin an episode
            state = following.get("policy_state")[places]
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        next_value[places] = self._critic(*inputs)
        return next_value * ~terminated
