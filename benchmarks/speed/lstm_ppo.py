"""What the scripts of PPO with an LSTM share: CartPole without its velocities, an LSTM of 64, stretches of 32 steps."""

from __future__ import annotations

import gymnasium
import numpy as np
from common import Workload, constant

SEEN = [0, 2]  # positions of cart and pole
SIZE, STRETCH = 64, 32

WORKLOADS = {
    "lstm-cartpole": Workload(
        env_id="CartPole-v1",
        envs=8,
        steps=128,
        minibatch=256,
        epochs=4,
        hidden=(),
        learning_rate=1e-3,
        schedule=constant,
        max_grad_norm=0.5,
        entropy_coef=0.0,
        value_coef=0.5,
        clip_value=False,
        default_frames=20_480,
    )
}


class Positions(gymnasium.ObservationWrapper):
    """CartPole without its velocities."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(space.low[SEEN], space.high[SEEN], dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Return the positions."""
        return observation[SEEN]


def make_env() -> gymnasium.Env:
    """Make one environment."""
    return Positions(gymnasium.make("CartPole-v1"))
