"""Acrobot: two links, of which the joint between them is driven; its tip is to be swung above a line."""

from __future__ import annotations

import math
from typing import Final

import gymnasium
import numpy as np
import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.base import ClassicControl, Numbers

_TIME: Final = 0.2
_GRAVITY: Final = 9.8
_SPEEDS: Final = (4 * math.pi, 9 * math.pi)
_HIGH: Final = np.array([1.0, 1.0, 1.0, 1.0, *_SPEEDS], dtype=np.float32)
_NAMES: Final = ("theta1", "theta2", "speed1", "speed2")

Four = tuple[Tensor, Tensor, Tensor, Tensor]


class Acrobot(ClassicControl):
    """The acrobot of Sutton (1996) by the equations of Sutton and Barto's book: each step but the last costs 1."""

    render_fps = 15.0
    observation_space = gymnasium.spaces.Box(-_HIGH, _HIGH, dtype=np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def initial(self, random: Random) -> Numbers:
        """Return four numbers near zero: it hangs."""
        return dict(zip(_NAMES, random.uniform(-0.1, 0.1, 4, dtype=self.dtype).unbind(1), strict=True))

    def transition(self, state: Numbers, action: Tensor, random: Random) -> Numbers:
        """Return the state after 0.2 s, by one step of Runge and Kutta's method of fourth order."""
        torque = (action - 1).to(self.dtype)
        begin: Four = (state["theta1"], state["theta2"], state["speed1"], state["speed2"])
        first = _slopes(begin, torque)
        second = _slopes(_moved(begin, first, _TIME / 2), torque)
        third = _slopes(_moved(begin, second, _TIME / 2), torque)
        fourth = _slopes(_moved(begin, third, _TIME), torque)
        theta1, theta2, speed1, speed2 = (
            value + _TIME / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
            for value, k1, k2, k3, k4 in zip(begin, first, second, third, fourth, strict=True)
        )
        return {
            "theta1": _wrapped(theta1),
            "theta2": _wrapped(theta2),
            "speed1": speed1.clamp(-_SPEEDS[0], _SPEEDS[0]),
            "speed2": speed2.clamp(-_SPEEDS[1], _SPEEDS[1]),
        }

    def whole_observation(self, state: Numbers) -> Tensor:
        """Return cosines and sines of the angles, and the velocities."""
        theta1, theta2, speed1, speed2 = (state[name] for name in _NAMES)
        return torch.stack([theta1.cos(), theta1.sin(), theta2.cos(), theta2.sin(), speed1, speed2], -1).float()

    def reward(self, state: Numbers, action: Tensor, next_state: Numbers) -> Tensor:
        """Return -1, and 0 for the step that reaches the line."""
        return self.terminal(next_state).to(self.dtype) - 1

    def terminal(self, state: Numbers) -> Tensor:
        """Return whether the tip is above the line."""
        return -state["theta1"].cos() - (state["theta2"] + state["theta1"]).cos() > 1.0


def _moved(values: Four, slopes: Four, time: float) -> Four:
    first, second, third, fourth = (value + time * slope for value, slope in zip(values, slopes, strict=True))
    return first, second, third, fourth


def _slopes(values: Four, torque: Tensor) -> Four:
    """Return the derivatives of angles and velocities; masses and lengths are 1, centres of mass in the middle."""
    theta1, theta2, speed1, speed2 = values
    cosine, sine = theta2.cos(), theta2.sin()
    d1 = 0.25 + (1.25 + cosine) + 2.0
    d2 = (0.25 + 0.5 * cosine) + 1.0
    phi2 = 0.5 * _GRAVITY * torch.cos(theta1 + theta2 - math.pi / 2)
    phi1 = (
        -0.5 * speed2.square() * sine - speed2 * speed1 * sine + 1.5 * _GRAVITY * torch.cos(theta1 - math.pi / 2) + phi2
    )
    second = (torque + d2 / d1 * phi1 - 0.5 * speed1.square() * sine - phi2) / (1.25 - d2.square() / d1)
    first = -(d2 * second + phi1) / d1
    return speed1, speed2, first, second


def _wrapped(angle: Tensor) -> Tensor:
    """Return the same angle between -pi and pi."""
    turns = torch.where(angle > math.pi, (-(angle - math.pi) / (2 * math.pi)).floor(), 0)
    turns = torch.where(angle < -math.pi, ((-math.pi - angle) / (2 * math.pi)).ceil(), turns)
    return angle + 2 * math.pi * turns
