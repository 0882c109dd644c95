"""The replay buffer `prioritized-hindsight`, for envs with goals, with samples in proportion to priorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlcore_plugin_replay.hindsight import HindsightReplayBuffer
from rlcore_plugin_replay.prioritized import PrioritizedReplayBuffer, PriorityConfig

if TYPE_CHECKING:
    from rlcore.types import Array


class PrioritizedHindsightReplayBuffer(HindsightReplayBuffer, PrioritizedReplayBuffer):
    """Samples transitions by their priorities, and gives most samples a goal that their episode reached later.

    The priority of a transition is its latest error, for any goal. Goals are chosen after the transitions and do not
    depend on priorities, so the importance weights are those of `PrioritizedReplayBuffer`.
    """

    class Config(PriorityConfig, HindsightReplayBuffer.Config):
        """Keys of `[buffer]`."""

    _config: Config  # type: ignore[assignment]  # stacks and goals do not go together
    _name = "prioritized-hindsight"
    _instead = 'the buffer "replay:hindsight"'

    def _chosen(self, size: int, count: int) -> Array:
        """Return the samples with another goal."""
        # random ones, as stratified samples are in the order of their rows
        order = torch.randperm(size, generator=self._generator, device=self._device)
        chosen: Array = order[:count].numpy(force=True)
        return chosen
