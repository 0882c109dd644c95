"""What a transform may have besides, to be a part of an exported policy; asked as what stands in `optional.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class ObservationModule(Protocol):
    """A transform of observations that can be a part of an exported policy; it keeps nothing of an episode."""

    def observation_module(self) -> torch.nn.Module:
        """Return a module that computes from observations `[env, *shape]` what `step` of a frozen copy returns."""
        ...


class ModuleWithMemory(Protocol):
    """A `torch.nn.Module` that computes what a transform makes of observations, and keeps nothing between two calls."""

    def initial_state(self, num_envs: int) -> Tensor:
        """Return a state to begin with, `[env, *state]`, of floats; it is not looked at where an episode begins."""
        ...

    def __call__(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the changed observations, and the state for the next call, `[env, *state]`, of the same dtype.

        Args:
            observation: `[env, *shape]`.
            state: what the call before returned; where `first` is True, whatever stands there.
            first: `[env]`, bool: which observations are the first of an episode.
        """
        ...


class MemoryModule(Protocol):
    """A transform of observations that keeps something of each episode, and can be a part of an exported policy."""

    def memory_module(self) -> ModuleWithMemory:
        """Return a module that computes from observations what `step` of a frozen copy returns."""
        ...


class ActionModule(Protocol):
    """A transform of actions that can be a part of an exported policy."""

    def action_module(self) -> torch.nn.Module:
        """Return a module that computes from actions `[env, *shape]` what `action` returns."""
        ...
