"""What a transform may have besides, to be a part of an exported policy; asked as what stands in `optional.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class ObservationModule(Protocol):
    """A transform of observations that can be a part of an exported policy; it keeps nothing of an episode."""

    def observation_module(self) -> torch.nn.Module:
        """Return a module that computes from observations `[env, *shape]` what `step` of a frozen copy returns."""
        ...


class ActionModule(Protocol):
    """A transform of actions that can be a part of an exported policy."""

    def action_module(self) -> torch.nn.Module:
        """Return a module that computes from actions `[env, *shape]` what `action` returns."""
        ...
