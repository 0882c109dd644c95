"""What a policy with a state remembers of the running episodes, on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.state import check_array
from rlcore.types import FIRST, NEXT_POLICY_STATE, POLICY_STATE, Key


class Memory:
    """The state of a policy in each env, from step to step.

    Args:
        policy: has a state.
        num_envs: how many envs there are.
        device: of the policy.
    """

    def __init__(self, policy: Any, num_envs: int, device: torch.device) -> None:
        self._policy = policy
        self._num_envs = num_envs
        self._device = device
        self._states: list[Tensor] = []
        self._firsts: list[Tensor] = []
        self.begin()

    def begin(self) -> None:
        """Begin an episode in every env."""
        self._state: Tensor = self._policy.initial_state(self._num_envs)
        self._first = torch.ones(self._num_envs, dtype=torch.bool, device=self._device)

    def recalled(self) -> tuple[Tensor, Tensor]:
        """Return what the policy acts on besides observations: its state, and whether an episode begins, `[env]`."""
        self._states.append(self._state)
        self._firsts.append(self._first)
        return self._state, self._first

    def keep(self, state: Tensor, ended: Tensor) -> None:
        """Keep the state after a step, and where an episode ended with it."""
        self._state, self._first = state, ended

    def described(self) -> dict[Key, Tensor]:
        """Return what a batch says of it, `[time, env, ...]` by key, and forget the steps of the batch."""
        states, first = torch.stack([*self._states, self._state]), torch.stack(self._firsts).unsqueeze(-1)
        self._states.clear()
        self._firsts.clear()
        return {POLICY_STATE: states[:-1], FIRST: first, NEXT_POLICY_STATE: states[1:]}

    def state_dict(self) -> dict[str, Tensor]:
        """Return what is remembered; taken between two batches."""
        return {"policy_state": self._state, "first": self._first}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Remember that.

        Raises:
            StorageError: it is of another number of envs, or of a policy with other states.
        """
        check_array("the state of the policy", state["policy_state"], self._state.shape, "[model]")
        self._state, self._first = (state[name].to(self._device) for name in ("policy_state", "first"))
