"""The toy env seen as images: stacks of small frames of bytes, of which every one is another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import gymnasium
import numpy as np
from pydantic import Field

from rlcore.types.context import Context
from rlcore_plugin_testing.toy import ToyEnv

if TYPE_CHECKING:
    from rlcore.types import Array


class ToyPixels(ToyEnv):
    """A `ToyEnv` that observes its latest frames, uint8 `[frame, height, width]`, the oldest first.

    An episode begins with its first frame repeated. A frame shows the step of the episode, its start and its position
    as brightness, a third of the height each.
    """

    class Config(ToyEnv.Config):
        """The episodes, and what is seen of them."""

        frames: int = Field(4, ge=1, description="frames in an observation")
        size: int = Field(6, ge=3, description="height and width of a frame")

    def __init__(self, config: Config, context: Context | None = None) -> None:
        super().__init__(config, context)
        shape = (config.frames, config.size, config.size)
        self.spec = replace(self.spec, id="toy-pixels", observation_space=gymnasium.spaces.Box(0, 255, shape, np.uint8))
        self._observation = np.zeros((config.num_envs, *shape), dtype=np.uint8)
        self._final = np.zeros_like(self._observation)

    def _observe(self, index: int) -> None:
        stack: Array = self._observation[index]
        if self._elapsed[index]:
            stack[:-1] = stack[1:].copy()
            self._draw(stack[-1], index)
        else:
            self._draw(stack[-1], index)
            stack[:-1] = stack[-1]

    def _draw(self, frame: Array, index: int) -> None:
        third = len(frame) // 3
        frame[:third] = min(10 * self._elapsed[index], 255)
        frame[third : 2 * third] = int(127.5 * (1 + self._start[index]))
        frame[2 * third :] = int(np.clip(128 + 100 * self._position[index], 0, 255))
