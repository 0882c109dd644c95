"""What Stable-Baselines3's SAC learns with hindsight in a maze of gymnasium-robotics, with the settings of the example.

One JSON line gives the mean return of 100 deterministic episodes on fixed seeds, the seconds that training took, and
the curve of ten evaluations.
"""

from __future__ import annotations

import argparse
import json
import time

import gymnasium
import gymnasium_robotics
import torch
from sb3_curve import CurveCallback
from sb3_tasks import evaluate
from stable_baselines3 import SAC, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

MAZE = "PointMaze_UMaze-v3"


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    gymnasium.register_envs(gymnasium_robotics)
    evaluated = gymnasium.make(MAZE)
    model = SAC(
        "MultiInputPolicy",
        make_vec_env(MAZE, n_envs=4),
        learning_rate=1e-3,
        buffer_size=200_000,
        learning_starts=2_000,
        train_freq=1,
        gradient_steps=2,
        gamma=0.98,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
        seed=args.seed,
    )
    record = CurveCallback(args.frames, 10, lambda model: evaluate(model, evaluated, 10))
    began = time.perf_counter()
    model.learn(args.frames, callback=record)
    seconds = time.perf_counter() - began - record.seconds_evaluating
    result = {"peer": "sb3", "task": "sac-point-maze", "seed": args.seed, "mean": evaluate(model, evaluated, 100)}
    result |= {"train_s": round(seconds, 1), "frames": args.frames, "curve": record.curve()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
