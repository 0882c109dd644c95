"""CartPole whose action is the force itself, in [-1, 1] of its largest: what MBPO is compared on."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from torch import Tensor

_RIGHT, _FORCE = 1, 10.0


class ContinuousCartPole(CartPoleEnv):
    """CartPole with one continuous action; a reward of 1 for each of at most 200 steps."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.action_space: Any = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: Any) -> Any:
        """Push to the right with the force, which may be negative."""
        self.action_space, box = gymnasium.spaces.Discrete(2), self.action_space
        self.force_mag = _FORCE * float(action[0])
        result = super().step(_RIGHT)
        self.action_space = box
        return result


def falls(observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
    """Return where an episode ends, bool `[row]`: the cart leaves its track, or the pole leans by 12 degrees."""
    return (following[:, 0].abs() > 2.4) | (following[:, 2].abs() > math.radians(12))


gymnasium.register("ContinuousCartPole-v0", ContinuousCartPole, max_episode_steps=200)
