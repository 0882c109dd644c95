"""What a policy with a state remembers of the running episodes, and how the steps of a batch call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.envs import EpisodeStarts
from rlcore.errors import PluginError
from rlcore.state import check_array
from rlcore.types import FIRST, NEXT_POLICY_STATE, POLICY_STATE, StatefulPolicy, offers

if TYPE_CHECKING:
    from rlcore.types import BoolArray, EnvSpec, Policy
    from rlcore_plugin_rollout.batch_storage import BatchStorage

_ALL: Final = slice(None)


class Remembering:
    """A policy with a state, called as one without: what it remembers of each env is kept here, on its device.

    Args:
        policy: has a state.
        spec: of the envs that it acts in.
        device: of the policy.
        share: those of the envs whose episodes count; the others have rows in every call, which do not matter.
    """

    def __init__(self, policy: Any, spec: EnvSpec, device: torch.device, share: slice = _ALL) -> None:
        self._policy = policy
        self._device = device
        self._num_envs = spec.num_envs
        self._share = share
        self._starts = EpisodeStarts(spec)
        self._nowhere = torch.zeros(spec.num_envs, dtype=torch.bool, device=device)
        self._ends: tuple[BoolArray, BoolArray] | None = None
        self._states: list[Tensor] = []
        self._firsts: list[BoolArray] = []
        self.begin()

    def begin(self) -> None:
        """Begin an episode in every env."""
        with torch.inference_mode():
            self._state: Tensor = self._policy.initial_state(self._num_envs)
        self._first = self._starts.reset()

    def enter(self, storage: BatchStorage) -> None:
        """Begin a batch, whose steps are written into a storage of the share."""
        self._ends = storage.terminated, storage.truncated
        self._states.clear()
        self._firsts.clear()

    def leave(self) -> None:
        """End a batch, whose last step is written."""
        self._go_on(len(self._firsts) - 1)
        self._ends = None

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions, on the CPU, and what `describe` needs, on the device."""
        time = len(self._firsts)
        if time:
            self._go_on(time - 1)
        self._firsts.append(self._first)
        self._states.append(self._state)
        first = torch.from_numpy(self._first).to(self._device) if self._first.any() else self._nowhere
        observation = observation.to(self._device, non_blocking=True)
        action, parameters, self._state = self._policy.act(observation, noise, self._state, first)
        return action.cpu(), parameters

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Any, Tensor]:
        """Return what the policy says of the actions, and what it remembered before and after each step.

        Raises:
            PluginError: it returned a state of another shape than its initial ones.
        """
        expected = (self._num_envs, *self._state_shape())
        if wrong := [state.shape for state in (*self._states, self._state) if state.shape != expected]:
            raise PluginError(
                f"the policy returned a state of shape {list(wrong[0])}; its initial_state has {list(expected)}"
            )
        states = torch.stack([*self._states, self._state])
        first = torch.from_numpy(np.stack(self._firsts)).unsqueeze(-1).to(self._device)
        return {
            **self._policy.describe(parameters, action),
            POLICY_STATE: states[:-1],
            FIRST: first,
            NEXT_POLICY_STATE: states[1:],
        }

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered of the share; taken between two batches."""
        return {
            "policy_state": self._state[self._share].cpu().numpy(),
            "first": self._first[self._share],
            "ended": self._starts.ended[self._share],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remember that.

        Raises:
            StorageError: it is of another number of envs, or of a policy with other states.
        """
        self.begin()
        policy_state, first = np.asarray(state["policy_state"]), np.asarray(state["first"])
        num_envs = len(self._first[self._share])
        check_array("the state of the policy", policy_state, (num_envs, *self._state_shape()), "[model]")
        check_array("first", first, (num_envs,), "[env] num_envs")
        with torch.inference_mode():
            self._state[self._share] = torch.from_numpy(policy_state).to(self._device)
        self._first[self._share] = first
        self._starts.ended[self._share] = np.asarray(state["ended"])

    def _go_on(self, time: int) -> None:
        """Find out which observations after a step of the batch are the first of an episode."""
        assert self._ends is not None
        terminated, truncated = self._ends
        ended = np.zeros(self._num_envs, dtype=bool)
        np.logical_or(terminated[time], truncated[time], out=ended[self._share])
        self._first = self._starts.after(ended)

    def _state_shape(self) -> tuple[int, ...]:
        return tuple(self._policy.initial_state(1).shape[1:])


def remembering(policy: Policy, spec: EnvSpec, device: torch.device, share: slice = _ALL) -> Remembering | None:
    """Return how steps call a policy with a state; None for one without. The arguments are those of `Remembering`."""
    return Remembering(policy, spec, device, share) if offers(policy, StatefulPolicy) else None
