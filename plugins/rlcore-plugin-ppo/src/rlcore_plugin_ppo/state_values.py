"""The values of the critic before and after the steps of a batch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, Context, has_memory, offers

if TYPE_CHECKING:
    from tensordict import TensorDict


class _OnDevice(Protocol):
    """A collector whose batches never were on the host, so that nobody should ask it about their numbers."""

    most_truncations: int
    """How many steps of an env are truncated at most within a batch."""


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
    def _most_truncations(self) -> int | None:
        """Of an env within a batch that stays on the device; None for other batches."""
        collector = self._built.get("collector")
        return collector.most_truncations if offers(collector, _OnDevice) else None

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

        Inside an episode it is the value before the next step, so the critic runs for last observations alone. On
        a device it runs for as many as there may be, since the host does not know how many there are.

        Args:
            value: the values before the steps.
            following: the entries under `next`.
        """
        next_value = torch.zeros_like(value)  # not `empty_like`: nothing below sets a terminated last step
        next_value[:, :-1] = value[:, 1:]
        terminated: Tensor = following.get("terminated")
        last = following.get("done").clone()
        last[:, -1] = True
        if self._most_truncations is not None or value.device.type != "cpu":  # where an answer would be waited for
            return self._without_host(next_value, last, following) * ~terminated
        places = (last & ~terminated).squeeze(-1)
        if places.any():  # some networks refuse a batch without rows
            next_value[places] = self._of_last(following, places)
        return next_value * ~terminated

    def _without_host(self, next_value: Tensor, last: Tensor, following: TensorDict) -> Tensor:
        """Return the values after the steps, those of last observations too; what is terminated has any."""
        steps, most = last.shape[1], self._most_truncations
        inner = following.get("truncated")[:, :-1, 0].int()
        if most is None or most >= steps - 1:
            within = torch.arange(steps - 1, device=last.device).expand(len(last), -1)
        else:  # among equal ones any, as those that are not last keep their values
            within = inner.topk(most, dim=1).indices
        times = torch.nn.functional.pad(within, (0, 1), value=steps - 1)
        envs = torch.arange(len(last), device=last.device).unsqueeze(-1)
        found = self._of_last(following, (envs.expand_as(times).t().reshape(-1), times.t().reshape(-1)))
        places = times.unsqueeze(-1)
        found = found.reshape(*times.shape[::-1], 1).transpose(0, 1)
        return next_value.scatter(1, places, torch.where(last.gather(1, places), found, next_value.gather(1, places)))

    def _of_last(self, following: TensorDict, places: Any) -> Tensor:
        """Return the values `[place, 1]` of observations that end an episode."""
        inputs = [following.get("observation")[places]]
        if self._has_memory:  # such an observation has the state after its step, and does not begin an episode
            state = following.get("policy_state")[places]
            inputs += [state, torch.zeros(len(state), 1, dtype=torch.bool, device=state.device)]
        return self._critic(*inputs)  # type: ignore[no-any-return]
