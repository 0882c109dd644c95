"""A loose plugin file: hooks that draw from the global generators or hide a state, and an env that cannot be saved."""

from __future__ import annotations

import os
import random
from typing import Any

import gymnasium
import numpy as np
import torch

from rlcore import Component, Context, hookimpl


class Noise:
    """Adds to every reward what it draws from each of the global generators."""

    def __init__(self, config: Any, context: Context) -> None:
        del config, context

    @hookimpl
    def batch_process(self, batch):
        """Return the batch with noise."""
        noise = random.gauss(0, 1) + float(np.random.normal()) + float(torch.randn(()))
        return batch.set(("next", "reward"), batch["next", "reward"] + 0.1 * noise)


class Hidden:
    """Makes rewards larger with each iteration, and does not say that it counts."""

    def __init__(self, config: Any, context: Context) -> None:
        del config, context
        self.count = 0

    @hookimpl
    def batch_process(self, batch):
        """Return the batch with larger rewards."""
        self.count += 1
        return batch.set(("next", "reward"), batch["next", "reward"] * (1 + 0.1 * self.count))


class Declared(Hidden):
    """The same, with its state."""

    def state_dict(self):
        """Return the count."""
        return {"count": self.count}

    def load_state_dict(self, state):
        """Set the count."""
        self.count = state["count"]


class Measured(gymnasium.Env):
    """As an instrument would be: its noise comes from nowhere that could be saved."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.count = 0

    def reset(self, *, seed=None, options=None):
        """Begin."""
        super().reset(seed=seed)
        self.count = 0
        return self._measure(), {}

    def step(self, action):
        """End after 50 steps."""
        self.count += 1
        return self._measure(), 1.0, self.count == 50, False, {}

    def _measure(self):
        return np.frombuffer(os.urandom(2), np.uint8).astype(np.float32) / 255


if "Measured-v0" not in gymnasium.registry:
    gymnasium.register("Measured-v0", Measured)


@hookimpl
def provide_components():
    """Return the parts."""
    return [
        Component("hook", "noise", Noise),
        Component("hook", "hidden", Hidden),
        Component("hook", "declared", Declared),
    ]
