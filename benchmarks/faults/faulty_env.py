"""CartPole with a fault that the environment variables `FAULT` and `FAULT_AT` ask for; without them plain CartPole.

The fault is outside any config, so that a run can be resumed with the same config once the environment is "repaired".
"""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Faulty(CartPoleEnv):
    """Does as `FAULT` says (nan, hang or raise) in step number `FAULT_AT` of this environment."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.steps_done = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, or fail."""
        observation, reward, terminated, truncated, info = super().step(action)
        self.steps_done += 1
        fault = os.environ.get("FAULT")
        if fault and self.steps_done == int(os.environ["FAULT_AT"]):
            if fault == "raise":
                raise RuntimeError("the simulator has crashed")
            while fault == "hang":
                time.sleep(1)
            reward = float("nan")
        return observation, float(reward), terminated, truncated, info


gymnasium.register("Faulty-v0", Faulty, max_episode_steps=500)
