"""What Stable-Baselines3 learns on CartPole with the settings of examples/dqn-cartpole.toml; its DQN is not double.

One JSON line gives the mean return of the last 100 training episodes, and the seconds that training took.
"""

import argparse
import json
import statistics
import time

import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor


def make_model(seed: int) -> DQN:
    """Make the environment and DQN; the target is copied after every 128 updates, since 256 frames lie between."""
    return DQN(
        "MlpPolicy",
        Monitor(gymnasium.make("CartPole-v1")),
        learning_rate=5e-4,
        buffer_size=100_000,
        learning_starts=1000,
        batch_size=64,
        gamma=0.99,
        train_freq=256,
        gradient_steps=128,
        target_update_interval=256,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
        max_grad_norm=10,
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
        seed=seed,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=50_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = make_model(args.seed)
    started = time.perf_counter()
    model.learn(total_timesteps=args.frames)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    print(
        json.dumps(
            {
                "peer": "sb3",
                "task": "dqn-cartpole",
                "seed": args.seed,
                "mean": statistics.fmean(returns[-100:]),
                "train_s": round(time.perf_counter() - started, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
