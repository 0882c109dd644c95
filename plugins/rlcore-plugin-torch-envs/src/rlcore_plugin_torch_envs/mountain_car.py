"""MountainCar: a car too weak for the hill that it is to climb, with three actions or with a force."""

from __future__ import annotations

from typing import Final

import gymnasium
import numpy as np
import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.base import ClassicControl, Numbers

_LEFT: Final = -1.2
_RIGHT: Final = 0.6
_SPEED: Final = 0.07
_GRAVITY: Final = 0.0025
_SPACE: Final = gymnasium.spaces.Box(
    np.array([_LEFT, -_SPEED], dtype=np.float32), np.array([_RIGHT, _SPEED], dtype=np.float32), dtype=np.float32
)


class MountainCar(ClassicControl):
    """The car of Moore (1990), with Gymnasium's numbers: each step costs 1."""

    render_fps = 30.0
    observation_space = _SPACE
    action_space: gymnasium.Space = gymnasium.spaces.Discrete(3)  # type: ignore[type-arg]
    goal = 0.5

    def initial(self, random: Random) -> Numbers:
        """Return a place in the valley, at rest."""
        position = random.uniform(-0.6, -0.4, dtype=self.dtype)
        return {"position": position, "velocity": torch.zeros_like(position)}

    def transition(self, state: Numbers, action: Tensor, random: Random) -> Numbers:
        """Return where the car is after a step, and how fast; the left end stops it."""
        velocity = state["velocity"] + self._push(action) - _GRAVITY * torch.cos(3 * state["position"])
        velocity = velocity.clamp(-_SPEED, _SPEED)
        position = (state["position"] + velocity).clamp(_LEFT, _RIGHT)
        stopped = (position == _LEFT) & (velocity < 0)
        return {"position": position, "velocity": velocity.masked_fill(stopped, 0)}

    def whole_observation(self, state: Numbers) -> Tensor:
        """Return place and velocity."""
        return torch.stack([state["position"], state["velocity"]], -1).float()

    def reward(self, state: Numbers, action: Tensor, next_state: Numbers) -> Tensor:
        """Return -1 for each step."""
        return -torch.ones_like(next_state["position"])

    def terminal(self, state: Numbers) -> Tensor:
        """Return whether the car is at the goal, and does not roll back."""
        return (state["position"] >= self.goal) & (state["velocity"] >= 0)

    def _push(self, action: Tensor) -> Tensor:
        return (action - 1).to(self.dtype) * 0.001


class MountainCarContinuous(MountainCar):
    """The same with a force: the goal pays 100, and each step costs a tenth of the square of the force."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    goal = 0.45

    def reward(self, state: Numbers, action: Tensor, next_state: Numbers) -> Tensor:
        """Return what the goal pays, less what the force costs."""
        return 100.0 * self.terminal(next_state).to(self.dtype) - 0.1 * action[:, 0].to(self.dtype).square()

    def _push(self, action: Tensor) -> Tensor:
        return action[:, 0].to(self.dtype).clamp(-1, 1) * 0.0015
