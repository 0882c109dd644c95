"""Lets the exploration of a policy decay with the frames."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from rlcore import TrainerHookBase
from rlcore.types import Progress, Stateful, offers


class GreedySteps(TrainerHookBase):
    """Steps an exploration module by the frames of each batch.

    Args:
        module: has `step(frames)`, and perhaps a state.
        progress: the clocks.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"post_steps": "__call__"})
    default_name: ClassVar[str] = "greedy_module"

    def __init__(self, module: Any, progress: Progress) -> None:
        self.module = module
        self._progress = progress
        self._frames = 0

    def __call__(self) -> None:
        """Step by what was collected since the last call."""
        frames, self._frames = self._progress.frames - self._frames, self._progress.frames
        if frames > 0:
            self.module.step(frames)

    def state_dict(self) -> dict[str, Any]:
        """Return the frames so far, and the state of the module."""
        state = dict(self.module.state_dict()) if offers(self.module, Stateful) else None
        return {"frames": self._frames, "module": state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        self._frames = state_dict["frames"]
        if state_dict["module"] is not None:
            self.module.load_state_dict(state_dict["module"])
