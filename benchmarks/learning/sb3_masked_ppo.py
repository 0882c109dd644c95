"""What MaskablePPO of sb3-contrib learns on the env of `masked_trail.py`, with the settings of `ppo-masked.toml`.

One JSON line gives the mean return of the last 100 training episodes, and the seconds that training took.
"""

import argparse
import json
import statistics
import time

import gymnasium
import masked_trail  # noqa: F401 - registers the env
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env


def make_model(seed: int) -> MaskablePPO:
    """Make the environments and the learner."""
    envs = make_vec_env(lambda: gymnasium.make("Trail-v0"), n_envs=8, seed=seed)
    return MaskablePPO(
        "MlpPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=256,
        batch_size=256,
        n_epochs=8,
        gamma=0.99,
        gae_lambda=0.95,
        clip_range=0.2,
        ent_coef=0.01,
        vf_coef=0.5,
        max_grad_norm=0.5,
        policy_kwargs={"net_arch": [64, 64]},
        device="cpu",
        seed=seed,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=300_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = make_model(args.seed)
    started = time.perf_counter()
    model.learn(total_timesteps=args.frames)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    result = {"peer": "sb3-contrib", "task": "ppo-masked", "seed": args.seed, "mean": statistics.fmean(returns)}
    print(json.dumps(result | {"train_s": round(time.perf_counter() - started, 1)}))


if __name__ == "__main__":
    main()
