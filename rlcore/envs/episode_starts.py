"""How an episode begins under each reset mode: which observations are its first, and which steps only reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlcore.types.records import BoolArray, EnvSpec, Step


def only_resets(spec: EnvSpec) -> bool:
    """Return whether the step after the end of an episode only resets, so that batches have a mask."""
    return spec.reset_mode == "next_step"


def write_mask(mask: BoolArray, ended: BoolArray, ended_before: BoolArray) -> None:
    """Mark the steps that count, where the step after an end only resets.

    Args:
        mask: `[time, env]`, written here.
        ended: `[time, env]`, whether an episode ended with each step.
        ended_before: `[env]`, whether one ended with the step before the first of these.
    """
    np.logical_not(ended_before, out=mask[0])
    np.logical_not(ended[:-1], out=mask[1:])


class EpisodeStarts:
    """Tells which observations are the first of an episode, step after step.

    Args:
        spec: of the envs.

    Attributes:
        ended: `[env]`, whether an episode ended with the latest step; False after a reset, which begins one.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._only_resets = only_resets(spec)
        self._num_envs = spec.num_envs
        self.ended: BoolArray = np.zeros(spec.num_envs, dtype=bool)

    def reset(self) -> BoolArray:
        """Begin an episode in every env; which of its observations are the first of one, `[env]`: all."""
        self.ended = np.zeros(self._num_envs, dtype=bool)
        return ~self.ended

    def first(self, step: Step) -> BoolArray:
        """Return which observations of a step are the first of an episode, `[env]`."""
        return self.after(step.terminated | step.truncated)

    def after(self, ended: BoolArray) -> BoolArray:
        """Return which observations are the first of an episode, `[env]`, after a step with which these ended."""
        ended_earlier, self.ended = self.ended, ended
        return ended_earlier if self._only_resets else ended
