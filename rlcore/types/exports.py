"""What a transform that remembers is within an exported policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class ModuleWithMemory(Protocol):
    """A `torch.nn.Module` that computes what a transform makes of observations, and keeps nothing between two calls.

    Called in `plugins/rlcore-plugin-agents/src/rlcore_plugin_agents/program.py`:

        return [part.initial_state(num_envs) for part in parts]
    """

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
