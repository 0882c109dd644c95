"""An env with goals: flip bits, one per step, until they are as wanted. Random actions hardly ever get there."""

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary


class BitFlip(gymnasium.Env):
    """Bits to be made equal to those of a goal, as in Andrychowicz et al. (2017, arXiv 1707.01495), section 3.1.

    Args:
        bits: how many; an episode has as many steps.
    """

    def __init__(self, bits: int = 8) -> None:
        leaf = MultiBinary(bits)
        self.observation_space = Dict({"observation": leaf, "achieved_goal": leaf, "desired_goal": leaf})
        self.action_space = Discrete(bits)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Draw bits and a goal."""
        super().reset(seed=seed)
        self.steps = 0
        self.bits, self.goal = self.np_random.integers(0, 2, (2, self.action_space.n), dtype=np.int8)
        return self._seen(), {}

    def step(self, action: int) -> tuple:
        """Flip one bit."""
        self.steps += 1
        self.bits[action] ^= 1
        reward = float(self.compute_reward(self.bits, self.goal, {}))
        terminated = bool(self.compute_terminated(self.bits, self.goal, {}))
        return self._seen(), reward, terminated, self.steps >= self.action_space.n, {}

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict) -> np.ndarray:
        """Return -1, and 0 where the goal is reached; of many goals at once too."""
        return self.compute_terminated(achieved_goal, desired_goal, info) - 1.0

    def compute_terminated(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict) -> np.ndarray:
        """Return whether the goal is reached."""
        return (achieved_goal == desired_goal).all(-1)

    def _seen(self) -> dict:
        return {"observation": self.bits.copy(), "achieved_goal": self.bits.copy(), "desired_goal": self.goal.copy()}


gymnasium.register("BitFlip-v0", BitFlip)
