"""The values of the critic before and after the steps of a batch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, Collector, Context, has_memory
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensordict import TensorDict


class StateValues:
    """Computes the values of a critic, with memory or without.

    Args:
        context: of a model with a critic.
    """

    def __init__(self, context: Context) -> None:
        model: Any = context.model
        self._critic = model.critic
        self._has_memory = has_memory(model)
        self._built = context.built  # the collector comes later

    @cached_property
    def _asks_host(self) -> bool:
        return not with_defaults(self._built.get("collector"), Collector).stays_on_device

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

        Inside an episode it is the value before the next step, so the critic runs for last observations alone. Where
        batches stay on the device it runs for all, as the host would have to be told which are last.

        Args:
            value: the values before the steps.
            following: the entries under `next`.
        """
        next_value = torch.zeros_like(value)  # not `empty_like`: nothing below sets a terminated last step
        next_value[:, :-1] = value[:, 1:]
        terminated: Tensor = following.get("terminated")
        last = following.get("done").clone()
        last[:, -1] = True
        if not self._asks_host:
            following_value = self._of_last(rows, following).unflatten(0, value.shape[1::-1]).transpose(0, 1)
            return torch.where(last, following_value, next_value) * ~terminated
        places = (last & ~terminated).squeeze(-1)
        if places.any():  # some networks refuse a batch without rows
            next_value[places] = self._of_last(lambda entry: entry[places], following)
        return next_value * ~terminated

    def _of_last(self, select: Callable[[Tensor], Tensor], following: TensorDict) -> Tensor:
        """Return the values `[row, 1]` of observations that end an episode."""
        inputs = [select(following.get("observation"))]
        if self._has_memory:  # such an observation has the state after its step, and does not begin an episode
            state = select(following.get("policy_state"))
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        return self._critic(*inputs)  # type: ignore[no-any-return]
