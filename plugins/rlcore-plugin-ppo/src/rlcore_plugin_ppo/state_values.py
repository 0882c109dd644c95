"""What the critic says of the observations before and after the steps of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, has_memory

if TYPE_CHECKING:
    from tensordict import TensorDict


class StateValues:
    """The values of a critic, with memory or without.

    Args:
        model: has a critic.
    """

    def __init__(self, model: Any) -> None:
        self._critic = model.critic
        self._has_memory = has_memory(model)

    def before(self, batch: TensorDict) -> Tensor:
        """Return the values of the observations `[env, time, 1]`.

        A critic with memory takes single steps, each from the state that was stored before it. Where the weights are
        those of the collection, these are the values along whole sequences.
        """
        if not self._has_memory:
            return self._critic(batch.get("observation"))  # type: ignore[no-any-return]
        found = self._critic(*(rows(batch.get(key)) for key in ("observation", POLICY_STATE, FIRST)))
        return found.unflatten(0, batch.batch_size[::-1]).transpose(0, 1)  # type: ignore[no-any-return]

    def after(self, value: Tensor, following: TensorDict) -> Tensor:
        """Return the value after each step `[env, time, 1]`: zero after a terminated one.

        Inside an episode it is the value of the following step; the critic runs only for the last observations, and
        not at all where every episode terminated.

        Args:
            value: what `before` returned.
            following: the entries under `next`.
        """
        next_value = torch.zeros_like(value)  # zero after a terminated last step, which nothing below sets
        next_value[:, :-1] = value[:, 1:]
        terminated: Tensor = following.get("terminated")
        last = following.get("done").clone()
        last[:, -1] = True
        places = (last & ~terminated).squeeze(-1)
        if not places.any():  # a network may not take an empty set of rows
            return next_value * ~terminated
        inputs = [following.get("observation")[places]]
        if self._has_memory:  # the last observation of an episode goes with the state after it, and begins none
            state = following.get("policy_state")[places]
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        next_value[places] = self._critic(*inputs)
        return next_value * ~terminated
