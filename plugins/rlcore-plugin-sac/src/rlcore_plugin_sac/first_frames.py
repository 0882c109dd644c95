"""Which actions of a batch belong to the first frames of a run, whatever the envs and the processes."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from rlcore.types import Context

log = logging.getLogger(__name__)


class FirstFrames:
    """The first frames of a run: the steps of a batch count in the order of time, those of one time by the envs.

    Args:
        frames: how many.
        context: of the model.
    """

    def __init__(self, frames: int, context: Context) -> None:
        self._frames = frames
        self._progress = context.progress
        self._rank, self._ranks = context.group.rank, context.group.size
        self._frame_skip = context.env_spec.frame_skip
        self._warned = False

    def are_now(self) -> bool:
        """Return whether the next batch begins among them."""
        return self._progress.frames < self._frames

    def of_batch(self, steps: int, num_envs: int, device: torch.device) -> Tensor:
        """Return which actions of the next batch are among them, bool `[time, env, 1]` on a device.

        A run in which all are gets a warning before its first step.
        """
        self._warn_of_all()
        frames_before_step = torch.arange(steps, device=device).unsqueeze(-1) * (num_envs * self._ranks)
        order = frames_before_step + torch.arange(num_envs, device=device) + self._rank * num_envs
        return (self._progress.frames + order * self._frame_skip < self._frames).unsqueeze(-1)

    def _warn_of_all(self) -> None:
        if self._warned or self._rank or self._frames < self._progress.total_frames:
            return
        self._warned = True
        log.warning(
            "[model] random_frames = %s: the run ends after %s frames ([run] total_frames), so that its policy never "
            "acts; lower the one or raise the other",
            f"{self._frames:,}",
            f"{self._progress.total_frames:,}",
        )
