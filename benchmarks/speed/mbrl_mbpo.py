"""MBPO of mbrl-lib on CartPole with continuous forces, with the settings of its own config for it; one JSON line.

It trains on episodes of at most 200 frames, and its `num_steps` counts the frames after the exploration. The seconds
are of those frames, training of dynamics and rollouts included; the return is that of the last ten evaluations.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import mbrl
import mbrl.algorithms.mbpo as mbpo
import mbrl.env.termination_fns
import mbrl.util.common
import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit
from mbrl.env.cartpole_continuous import CartPoleEnv
from omegaconf import OmegaConf

LENGTH = 200


def box(low: Any, high: Any, shape: Any) -> Box:
    """Make the space of the actions out of lists, which Gymnasium takes no more."""
    return Box(np.array(low, np.float32), np.array(high, np.float32), tuple(shape))


class CartPole(CartPoleEnv):
    """The env with the `reset` of later Gymnasiums."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed)


def make_env(seed: int) -> TimeLimit:
    """Make an env that goes on from a seed."""
    env = TimeLimit(CartPole(), LENGTH)
    env.reset(seed=seed)
    return env


def config_of(seed: int, exploration: int, frames: int) -> Any:
    """Return the config of mbrl-lib; only the first frames are uniform here, as by the policy they are all the same."""
    folder = Path(mbrl.__file__).parent / "examples" / "conf"
    parts = {
        "algorithm": OmegaConf.load(folder / "algorithm" / "mbpo.yaml"),
        "overrides": OmegaConf.load(folder / "overrides" / "mbpo_cartpole.yaml"),
        "dynamics_model": OmegaConf.load(folder / "dynamics_model" / "gaussian_mlp_ensemble.yaml"),
    }
    config = OmegaConf.create({**parts, "seed": seed, "device": "cpu", "log_frequency_agent": 1_000})
    config.overrides.num_steps = frames
    config.algorithm.initial_exploration_steps = exploration
    config.algorithm.random_initial_explore = True
    config.dynamics_model._recursive_ = False  # it makes its activation itself
    config.algorithm.agent.action_space._target_ = "mbrl_mbpo.box"
    return config


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exploration", type=int, default=5_000)
    parser.add_argument("--frames", type=int, default=5_000, help="after the exploration")
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = config_of(args.seed, args.exploration, args.frames)
    torch.manual_seed(args.seed)
    began: list[float] = []
    explore = mbrl.util.common.rollout_agent_trajectories
    evaluate = mbpo.evaluate
    evaluating = 0.0

    def exploring(*given: Any, **named: Any) -> Any:
        result = explore(*given, **named)
        began.append(time.perf_counter())
        return result

    def untimed(*given: Any) -> float:
        nonlocal evaluating
        start = time.perf_counter()
        result = float(evaluate(*given))
        returns.append(result)
        evaluating += time.perf_counter() - start
        return result

    returns: list[float] = []
    mbrl.util.common.rollout_agent_trajectories = exploring
    mbpo.evaluate = untimed
    with tempfile.TemporaryDirectory() as folder:
        envs = [make_env(seed) for seed in (args.seed, args.seed + 10_000)]
        mbpo.train(*envs, mbrl.env.termination_fns.cartpole, config, silent=True, work_dir=folder)
    seconds = time.perf_counter() - began[0] - evaluating
    mean = statistics.fmean(returns[-10:])
    found = {"peer": "mbrl-lib", "seed": args.seed, "mean": mean, "frames_per_s": args.frames / seconds}
    print(json.dumps({**found, "returns": returns}))


if __name__ == "__main__":
    main()
