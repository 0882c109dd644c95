"""CartPole: a pole on a cart that is pushed to the left or to the right."""

from __future__ import annotations

import math
from typing import Final

import gymnasium
import numpy as np
import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.base import ClassicControl, Numbers

_GRAVITY: Final = 9.8
_POLE: Final = 0.1
_TOTAL: Final = 1.1  # mass of cart and pole
_HALF: Final = 0.5  # of the length of the pole
_POLE_TIMES_HALF: Final = _POLE * _HALF
_FORCE: Final = 10.0
_TIME: Final = 0.02
_ANGLE: Final = 12 * 2 * math.pi / 360
_PLACE: Final = 2.4
_HIGH: Final = np.array([_PLACE * 2, np.inf, _ANGLE * 2, np.inf], dtype=np.float32)
_NAMES: Final = ("x", "x_dot", "theta", "theta_dot")


class CartPole(ClassicControl):
    """The cart-pole of Barto, Sutton and Anderson (1983), with Gymnasium's numbers: Euler steps, a reward of 1."""

    render_fps = 50.0
    observation_space = gymnasium.spaces.Box(-_HIGH, _HIGH, dtype=np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def initial(self, random: Random) -> Numbers:
        """Return four numbers near zero."""
        return dict(zip(_NAMES, random.uniform(-0.05, 0.05, 4, dtype=self.dtype).unbind(1), strict=True))

    def transition(self, state: Numbers, action: Tensor, random: Random) -> Numbers:
        """Return the state after 20 ms."""
        x, x_dot, theta, theta_dot = (state[name] for name in _NAMES)
        force = action.to(self.dtype) * (2 * _FORCE) - _FORCE
        cosine, sine = theta.cos(), theta.sin()
        pushed = (force + _POLE_TIMES_HALF * theta_dot.square() * sine) / _TOTAL
        theta_acceleration = (_GRAVITY * sine - cosine * pushed) / (
            _HALF * (4.0 / 3.0 - _POLE * cosine.square() / _TOTAL)
        )
        x_acceleration = pushed - _POLE_TIMES_HALF * theta_acceleration * cosine / _TOTAL
        return {
            "x": x + _TIME * x_dot,
            "x_dot": x_dot + _TIME * x_acceleration,
            "theta": theta + _TIME * theta_dot,
            "theta_dot": theta_dot + _TIME * theta_acceleration,
        }

    def whole_observation(self, state: Numbers) -> Tensor:
        """Return the four numbers."""
        return torch.stack([state[name] for name in _NAMES], -1).float()

    def reward(self, state: Numbers, action: Tensor, next_state: Numbers) -> Tensor:
        """Return 1 for each step."""
        return torch.ones_like(next_state["x"])

    def terminal(self, state: Numbers) -> Tensor:
        """Return whether the cart left the track, or the pole fell."""
        return (state["x"].abs() > _PLACE) | (state["theta"].abs() > _ANGLE)
