"""Speed of stepping 8 games of Pong with random actions: rlcore's collector, and ALE's vector env driven bare.

The collector fills batches of 128 steps of each game; its policy is that of DQN with epsilon 1.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable

from common import add_run_flags, clock, emit, prepare
from pong import PONG

BATCHES = 6


def bare(seed: int, threads: int) -> Callable[[], object]:
    """Return what steps ALE's vector env through one batch."""
    import numpy as np
    from ale_py.vector_env import AtariVectorEnv

    games = AtariVectorEnv("pong", PONG.envs, num_threads=threads, reward_clipping=False)
    games.reset(seed=seed)
    generator = np.random.default_rng(seed)

    def batch() -> None:
        actions = generator.integers(0, games.single_action_space.n, (PONG.steps, PONG.envs))
        for action in actions:
            games.step(action)

    return batch


def collector(vectorization: str, seed: int, threads: int, folder: str) -> Callable[[], object]:
    """Return what collects one batch."""
    from rlcore import build, load_config

    sections = {
        "run": {"total_frames": 10**9, "seed": seed, "folder": folder, "threads": 1},
        "env": {
            "use": "atari",
            "game": "pong",
            "num_envs": PONG.envs,
            "vectorization": vectorization,
            "threads": threads if vectorization == "native" else 0,
        },
        "model": {
            "use": "q-network",
            "hidden": [],
            "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
            "epsilon_start": 1.0,
            "epsilon_end": 1.0,
        },
        "loss": {"use": "dqn"},
        "optimizer": [{"use": "adam"}],
        "collector": {"frames_per_batch": 4 * PONG.batch},
        "buffer": {"use": "replay", "capacity": 2 * PONG.batch},
    }
    return build(load_config(sections)).trainer.parts.collector.collect_columns


def main() -> None:
    """Step and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=["pong"], default="pong")
    parser.add_argument("--system", choices=["ale", "serial", "native"], required=True)
    parser.add_argument("--frames", type=int, default=BATCHES * PONG.batch, help="steps of all games together")
    add_run_flags(parser)
    args = parser.parse_args()
    prepare(args)
    with tempfile.TemporaryDirectory() as folder:
        if args.system == "ale":
            batch = bare(args.seed, args.threads)
        else:
            batch = collector(args.system, args.seed, args.threads, folder)
        batch()
        began = clock()
        for _ in range(args.frames // PONG.batch):
            batch()
        seconds = clock() - began
    name = "ale" if args.system == "ale" else f"rlcore, {args.system}"
    emit(peer=name, workload=args.workload, threads=args.threads, frames_per_s=args.frames / seconds)


if __name__ == "__main__":
    main()
