"""An env whose observations tell nothing: which of two arms pays has to be found out, and remembered."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class TwoArms(gymnasium.Env):
    """One of two arms pays 1 for each pull, the other nothing; each episode draws one of them.

    The smallest of the tasks of Duan et al. (2016, arXiv 1611.02779) and Wang et al. (2016, arXiv 1611.05763). A policy
    that is shown its last action and its last reward pulls the wrong arm at most once; for any other one half of the
    pulls are wrong.

    Args:
        pulls: of an episode.
    """

    observation_space = Box(0, 0, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, pulls: int = 8) -> None:
        self.pulls = pulls

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Draw the arm that pays."""
        super().reset(seed=seed)
        self.pulled = 0
        self.paying = int(self.np_random.integers(2))
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple:
        """Pull an arm."""
        self.pulled += 1
        return np.zeros(1, np.float32), float(action == self.paying), self.pulled >= self.pulls, False, {}


gymnasium.register("TwoArms-v0", TwoArms)
