"""What Stable-Baselines3's PPO and DQN learn on a game of MinAtar, with the network and the settings of the examples.

One JSON line gives the mean return of the last 100 training episodes, and the seconds that training took. The peers'
environment needs MinAtar.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_curve import CurveCallback
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

FRAMES = 1_000_000


class Numbers(gymnasium.ObservationWrapper):
    """Images of truth values as floats, channels first."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        height, width, channels = env.observation_space.shape
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (channels, height, width), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation.transpose(2, 0, 1).astype(np.float32)


class SmallCNN(BaseFeaturesExtractor):
    """The network of Young and Tian (2019): 16 kernels of 3 x 3, then 128 units."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        super().__init__(observation_space, 128)
        convolution = nn.Conv2d(observation_space.shape[0], 16, 3)
        self.layers = nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), nn.Linear(16 * 8 * 8, 128), nn.ReLU())

    def forward(self, observation: Tensor) -> Tensor:
        return self.layers(observation)


NETWORK = {
    "features_extractor_class": SmallCNN,
    "net_arch": [],
    "normalize_images": False,
    "optimizer_kwargs": {"eps": 1e-8},
}
SETTINGS: dict[str, tuple[type[BaseAlgorithm], int, dict[str, Any]]] = {
    "ppo": (
        PPO,
        8,
        {
            "learning_rate": lambda remaining: 1e-3 * remaining,
            "n_steps": 128,
            "batch_size": 256,
            "n_epochs": 4,
            "clip_range": 0.1,
            "ent_coef": 0.01,
            "vf_coef": 0.25,  # of all of the squared error, of which rlcore takes half
        },
    ),
    "dqn": (
        DQN,
        1,
        {
            "learning_rate": 2.5e-4,
            "buffer_size": 100_000,
            "learning_starts": 5_000,
            "target_update_interval": 1_000,
            "exploration_final_eps": 0.1,
        },
    ),
}


def make_game(game: str) -> gymnasium.Env:
    """Make one game."""
    logging.disable(logging.WARNING)
    import minatar.gym

    minatar.gym.register_envs()
    return Monitor(Numbers(gymnasium.make(f"MinAtar/{game}-v1")))


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="ALGORITHM-minatar-GAME")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    name, _, game = args.task.partition("-minatar-")
    algorithm, num_envs, settings = SETTINGS[name]
    envs = DummyVecEnv([lambda: make_game(game.title().replace("-", "")) for _ in range(num_envs)])
    model = algorithm("CnnPolicy", envs, policy_kwargs=NETWORK, device="cpu", seed=args.seed, **settings)
    began = time.perf_counter()
    record = CurveCallback(FRAMES, 100)
    model.learn(FRAMES, callback=record)
    seconds = time.perf_counter() - began
    mean = statistics.fmean(episode["r"] for episode in model.ep_info_buffer)
    found = {"peer": "sb3", "task": args.task, "seed": args.seed, "mean": mean, "train_s": round(seconds, 1)}
    print(json.dumps(found | {"frames": FRAMES, "curve": record.curve()}))


if __name__ == "__main__":
    main()
