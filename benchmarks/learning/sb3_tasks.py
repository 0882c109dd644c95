"""What Stable-Baselines3 and sb3-contrib learn, with the settings of their zoo where it has some, or of rlcore.

One JSON line gives the mean return of deterministic episodes on fixed seeds, or of the last 100 training episodes, the
seconds that training took, and the curve: ten evaluations, or the latest training episodes at a hundred places.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import masked_trail  # noqa: F401 - registers the env of ppo-masked
import numpy as np
import torch
from dm_tasks import make_env
from sb3_contrib import QRDQN, CrossQ, MaskablePPO
from sb3_curve import CurveCallback
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

FIRST_SEED = 10_000


@dataclass(frozen=True)
class Task:
    """What is trained: the algorithm, its env, environment frames, and settings that are not its defaults.

    Attributes:
        noise: standard deviation of the exploration noise, in units of the box.
        evaluation: deterministic episodes at the end; 0 for the last 100 of training.
        repeat: frames of each action.
        envs: how many at a time.
    """

    algorithm: Callable[..., BaseAlgorithm]
    env_id: str
    frames: int
    settings: dict[str, Any] = field(default_factory=dict)
    noise: float | None = None
    evaluation: int = 100
    repeat: int = 1
    envs: int = 1


PENDULUM = {"gamma": 0.98, "buffer_size": 200_000, "learning_starts": 10_000, "learning_rate": 1e-3}
WIDE = {"policy_kwargs": {"net_arch": [400, 300]}}
ONE = {"train_freq": 1, "gradient_steps": 1}
# those of examples/dqn-cartpole.toml, of which it has neither double Q-learning nor the squared error; the target is
# copied after every 128 updates, since 256 frames lie between. Its first 1,000 actions are random
DQN_CARTPOLE = {
    "learning_rate": 5e-4,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "batch_size": 64,
    "gamma": 0.99,
    "train_freq": 256,
    "gradient_steps": 128,
    "target_update_interval": 256,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
    "max_grad_norm": 10,
    "policy_kwargs": {"net_arch": [256, 256]},
}
PPO_MASKED = {
    "learning_rate": 1e-3,
    "n_steps": 256,
    "batch_size": 256,
    "n_epochs": 8,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "policy_kwargs": {"net_arch": [64, 64]},
}
# those of examples/sac-dm-control.toml; frames are repeated, so that 1,000 actions are 2,000 of them
DM_CONTROL = {"learning_rate": 1e-3, "buffer_size": 100_000, "learning_starts": 1_000}
TASKS = {
    "sac-pendulum": Task(SAC, "Pendulum-v1", 20_000, {"learning_rate": 1e-3}),
    "td3-pendulum": Task(TD3, "Pendulum-v1", 20_000, PENDULUM | WIDE | ONE, 0.1),
    "ddpg-pendulum": Task(DDPG, "Pendulum-v1", 20_000, PENDULUM | WIDE | ONE, 0.1),
    "crossq-pendulum": Task(CrossQ, "Pendulum-v1", 20_000, {"policy_kwargs": {"net_arch": [256, 256]}}),
    "sac-halfcheetah": Task(SAC, "HalfCheetah-v5", 100_000, {"learning_starts": 10_000}, evaluation=10),
    "td3-halfcheetah": Task(
        TD3,
        "HalfCheetah-v5",
        100_000,
        {"learning_starts": 10_000, "learning_rate": 1e-3, "batch_size": 256} | WIDE | ONE,
        0.1,
        evaluation=10,
    ),
    "sac-cartpole-swingup": Task(SAC, "dm_control/cartpole-swingup-v0", 100_000, DM_CONTROL, evaluation=10, repeat=2),
    "sac-cup-catch": Task(SAC, "dm_control/ball_in_cup-catch-v0", 100_000, DM_CONTROL, evaluation=10, repeat=2),
    "qr-dqn-acrobot": Task(
        QRDQN,
        "Acrobot-v1",
        100_000,
        {
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 0,
            "target_update_interval": 250,
            "train_freq": 4,
            "gradient_steps": -1,
            "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
            "policy_kwargs": {"n_quantiles": 25, "net_arch": [256, 256]},
        },
        evaluation=0,
    ),
    "dqn-cartpole": Task(DQN, "CartPole-v1", 50_000, DQN_CARTPOLE, evaluation=0),
    "ppo-masked": Task(MaskablePPO, "Trail-v0", 300_000, PPO_MASKED, evaluation=0, envs=8),
}


def evaluate(model: BaseAlgorithm, env: gymnasium.Env, episodes: int) -> float:
    """Return the mean return of deterministic episodes, each from a seed of its own."""
    returns = []
    for number in range(episodes):
        observation, _ = env.reset(seed=FIRST_SEED + number)
        total, ended = 0.0, False
        while not ended:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
    return statistics.fmean(returns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, help="default: those of the task")
    args = parser.parse_args()
    task = TASKS[args.task]
    torch.set_num_threads(1)
    settings = dict(task.settings)
    envs = make_vec_env(lambda: make_env(task.env_id, task.repeat), n_envs=task.envs)
    if task.noise is not None:
        size = envs.action_space.shape[0]
        settings["action_noise"] = NormalActionNoise(np.zeros(size), task.noise * np.ones(size))
    model = task.algorithm("MlpPolicy", envs, device="cpu", seed=args.seed, **settings)
    frames = args.frames or task.frames
    steps = frames // task.repeat
    evaluated = make_env(task.env_id, task.repeat) if task.evaluation else None
    record = CurveCallback(
        steps,
        100 if evaluated is None else 10,
        None if evaluated is None else lambda model: evaluate(model, evaluated, min(10, task.evaluation)),
        task.repeat,
    )
    started = time.perf_counter()
    model.learn(total_timesteps=steps, callback=record)
    seconds = time.perf_counter() - started - record.seconds_evaluating
    if evaluated is not None:
        mean = evaluate(model, evaluated, task.evaluation)
    else:
        mean = statistics.fmean(episode["r"] for episode in model.ep_info_buffer)
    peer = "sb3-contrib" if task.algorithm in (QRDQN, CrossQ, MaskablePPO) else "sb3"
    found = {"peer": peer, "task": args.task, "seed": args.seed, "mean": mean, "train_s": round(seconds, 1)}
    print(json.dumps(found | {"frames": frames, "curve": record.curve()}))


if __name__ == "__main__":
    main()
