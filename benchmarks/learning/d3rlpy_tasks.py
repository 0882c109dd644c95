"""What d3rlpy learns from a dataset of `make_data.py`, with its defaults but for sizes and rates; one JSON line.

Afterwards the policy plays episodes without noise. `bc10` is cloning of the tenth of the episodes with the best
returns.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import d3rlpy
import gymnasium
import h5py
import numpy as np
import torch
from d3rlpy.logging import NoopAdapterFactory

SPEED = Path(__file__).resolve().parents[1] / "speed"
DATA = Path(__file__).resolve().parents[1] / "data"
FIRST_SEED = 10_000  # of the episodes, as of rlcore's evaluator: their returns differ by where they begin


def dataset_of(folder: Path, best: float) -> Any:
    """Return the episodes of a dataset, or those of best return."""
    with h5py.File(folder / "main_data.hdf5") as data:
        episodes = [{name: data[f"episode_{n}/{name}"][()] for name in data["episode_0"]} for n in range(len(data))]
    episodes.sort(key=lambda episode: -episode["rewards"].sum())
    columns: dict[str, list[Any]] = {
        name: [] for name in ("observations", "actions", "rewards", "terminals", "timeouts")
    }
    for episode in episodes[: math.ceil(best * len(episodes))]:
        count, terminated = len(episode["rewards"]), bool(episode["terminations"][-1])
        last = np.arange(count) == count - 1
        columns["observations"].append(episode["observations"][:-1])
        columns["actions"].append(episode["actions"].reshape(count, -1))
        columns["rewards"].append(episode["rewards"].reshape(count, 1).astype(np.float32))
        columns["terminals"].append((last & terminated).astype(np.float32))
        columns["timeouts"].append((last & (not terminated)).astype(np.float32))
    found = {name: np.concatenate(parts) for name, parts in columns.items()}
    return d3rlpy.dataset.MDPDataset(**found)


def play(algorithm: Any, env_id: str, episodes: int) -> list[float]:
    """Return the returns of episodes."""
    env, returns = gymnasium.make(env_id), []
    for seed in range(episodes):
        observation, over, total = env.reset(seed=FIRST_SEED + seed)[0], False, 0.0
        while not over:
            action = algorithm.predict(np.asarray(observation, dtype=np.float32)[None])[0]
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def main() -> None:
    """Train, evaluate, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=["bc", "bc10", "td3-bc", "cql", "iql", "discrete-cql"])
    parser.add_argument("data", help="name of the dataset")
    parser.add_argument("env", help="where the policy plays")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=1, help="how many count, the last ones, by their mean")
    parser.add_argument("--every", type=int, help="updates between two evaluations; default: one at the end")
    args = parser.parse_args()
    sys.path.insert(0, str(SPEED))
    from d3rlpy_algorithms import algorithm_of

    torch.set_num_threads(1)
    d3rlpy.seed(args.seed)
    dataset = dataset_of(DATA / args.data, 0.1 if args.algorithm == "bc10" else 1.0)
    # the scaling of the observations is part of TD3+BC
    scaled = {"observation_scaler": d3rlpy.preprocessing.StandardObservationScaler()}
    algorithm = algorithm_of(args.algorithm, **(scaled if args.algorithm == "td3-bc" else {}))
    every = args.every or args.updates
    epochs = algorithm.fitter(
        dataset,
        n_steps=args.updates,
        n_steps_per_epoch=every,
        logger_adapter=NoopAdapterFactory(),
        show_progress=False,
        save_interval=10**9,
    )
    seconds, points, returns = 0.0, [], []
    began = time.perf_counter()
    for epoch, _ in epochs:
        seconds += time.perf_counter() - began
        returns = play(algorithm, args.env, args.episodes)
        points.append((epoch * every, statistics.fmean(returns), round(seconds, 1)))
        began = time.perf_counter()
    found = {"peer": "d3rlpy", "task": f"{args.algorithm}-{args.data}", "seed": args.seed, "train_s": round(seconds, 1)}
    ats, means, times = zip(*points, strict=True)
    mean = statistics.fmean(means[-args.evaluations :])
    curve = {"at": ats, "return": means, "seconds": times}
    length = {"frames": args.updates, "clock": "updates", "curve": curve}
    print(json.dumps({**found, "mean": mean, "std": statistics.pstdev(returns), **length}))


if __name__ == "__main__":
    main()
