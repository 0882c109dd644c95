"""What Stable-Baselines3 and sb3-contrib learn, with the settings of their zoo where it has some, or of rlcore.

One JSON line gives the mean return of deterministic episodes on fixed seeds, or of the last 100 training episodes, the
seconds that training took, and the curve: ten evaluations, or the latest training episodes at a hundred places.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import masked_trail  # noqa: F401 - registers the env of ppo-masked
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from dm_tasks import make_env
from sb3_curve import CurveCallback
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

HERE = Path(__file__).parent / "sb3"
FIRST_SEED = 10_000


@dataclass(frozen=True)
class Task:
    """What is trained: a file of `sb3/`.

    Attributes:
        algorithm: a class of Stable-Baselines3 or sb3-contrib.
        env: its id.
        frames: of the env.
        settings: arguments of the class that are not its defaults.
        noise: standard deviation of the exploration noise, in units of the box.
        evaluation: deterministic episodes at the end; 0 for the last 100 of training.
        repeat: frames of each action.
        envs: how many at a time.
    """

    algorithm: str
    env: str
    frames: int
    settings: dict[str, Any]
    noise: float | None = None
    evaluation: int = 100
    repeat: int = 1
    envs: int = 1

    @classmethod
    def named(cls, name: str) -> Task:
        """Read the task of a name."""
        return cls(**tomllib.loads((HERE / f"{name}.toml").read_text()))

    @property
    def peer(self) -> str:
        """Whose algorithm it is."""
        return "sb3-contrib" if hasattr(sb3_contrib, self.algorithm) else "sb3"

    def model(self, envs: Any, seed: int) -> Any:
        """Return an untrained model for envs, or for the id of one."""
        use = getattr(sb3_contrib if self.peer == "sb3-contrib" else stable_baselines3, self.algorithm)
        settings = dict(self.settings)
        if self.noise is not None:
            size = envs.action_space.shape[0]
            settings["action_noise"] = NormalActionNoise(np.zeros(size), self.noise * np.ones(size))
        return use("MlpPolicy", envs, device="cpu", seed=seed, **settings)


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
    parser.add_argument("task", choices=sorted(path.stem for path in HERE.glob("*.toml")))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, help="default: those of the task")
    args = parser.parse_args()
    task = Task.named(args.task)
    torch.set_num_threads(1)
    envs = make_vec_env(lambda: make_env(task.env, task.repeat), n_envs=task.envs)
    model = task.model(envs, args.seed)
    frames = args.frames or task.frames
    steps = frames // task.repeat
    evaluated = make_env(task.env, task.repeat) if task.evaluation else None
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
    found = {"peer": task.peer, "task": args.task, "seed": args.seed, "mean": mean, "train_s": round(seconds, 1)}
    print(json.dumps(found | {"frames": frames, "curve": record.curve()}))


if __name__ == "__main__":
    main()
