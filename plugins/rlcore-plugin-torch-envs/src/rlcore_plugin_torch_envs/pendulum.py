"""Pendulum: to be swung up, and held."""

from __future__ import annotations

import math
from typing import Final

import gymnasium
import numpy as np
import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.base import ClassicControl, Numbers

_SPEED: Final = 8.0
_TORQUE: Final = 2.0
_TIME: Final = 0.05
_GRAVITY: Final = 10.0
_HIGH: Final = np.array([1.0, 1.0, _SPEED], dtype=np.float32)


class Pendulum(ClassicControl):
    """Gymnasium's pendulum: a mass of 1 kg on a rod of 1 m; episodes end by their limit alone."""

    render_fps = 30.0
    observation_space = gymnasium.spaces.Box(-_HIGH, _HIGH, dtype=np.float32)
    action_space = gymnasium.spaces.Box(-_TORQUE, _TORQUE, (1,), np.float32)

    def initial(self, random: Random) -> Numbers:
        """Return any angle, and a small velocity."""
        angle, velocity = random.uniform(-1, 1, 2, dtype=self.dtype).unbind(1)
        return {"theta": math.pi * angle, "theta_dot": velocity}

    def transition(self, state: Numbers, action: Tensor, random: Random) -> Numbers:
        """Return angle and velocity after 50 ms."""
        velocity = state["theta_dot"] + (1.5 * _GRAVITY * state["theta"].sin() + 3.0 * self._torque(action)) * _TIME
        velocity = velocity.clamp(-_SPEED, _SPEED)
        return {"theta": state["theta"] + velocity * _TIME, "theta_dot": velocity}

    def whole_observation(self, state: Numbers) -> Tensor:
        """Return cosine and sine of the angle, and the velocity."""
        return torch.stack([state["theta"].cos(), state["theta"].sin(), state["theta_dot"]], -1).float()

    def reward(self, state: Numbers, action: Tensor, next_state: Numbers) -> Tensor:
        """Return what angle, velocity and torque cost."""
        angle = (state["theta"] + math.pi) % (2 * math.pi) - math.pi
        return -(angle.square() + 0.1 * state["theta_dot"].square() + 0.001 * self._torque(action).square())

    def terminal(self, state: Numbers) -> Tensor:
        """Return False."""
        return torch.zeros_like(state["theta"], dtype=torch.bool)

    def _torque(self, action: Tensor) -> Tensor:
        return action[:, 0].to(self.dtype).clamp(-_TORQUE, _TORQUE)
