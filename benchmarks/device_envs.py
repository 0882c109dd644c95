"""Frames per second of PPO on CartPole whose envs are tensors, beside the same run on Gymnasium's vector env.

    .venv/bin/python benchmarks/device_envs.py --envs 64 1024 --rounds 7

Each side trains in this process, one iteration after the other and the sides in turn, so that all see the same machine.
A round is `--iterations` iterations of each side; a figure is the median of the rounds, a ratio that of the ratios of
each round. Evaluations, metrics and checkpoints are left out.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from bench import RESULTS, machine

from rlcore import load_config
from rlcore.run.build import build

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ppo-cartpole.toml"
STEPS = 128
SIDES: dict[str, list[str]] = {
    "Gymnasium, `local`": [],
    "tensors, `local`": ["env.use=torch-envs"],
    "tensors, `device`": ["env.use=torch-envs", "collector.use=device"],
    "Gymnasium, `local`, compiled": ["learner.compile=true"],
    "tensors, `device`, compiled": [
        "env.use=torch-envs",
        "collector.use=device",
        "collector.compile=true",
        "learner.compile=true",
    ],
}


def trainer_of(
    changes: list[str],
    num_envs: int,
    example: Path = EXAMPLE,
    steps: int = STEPS,
    minibatches: int = 4,
    device: str = "cpu",
) -> Any:
    """Return a trainer that is ready, writes nothing and never ends."""
    frames = steps * num_envs
    sizes = [
        f"env.num_envs={num_envs}",
        f"collector.frames_per_batch={frames}",
        f"buffer.minibatch_size={frames // minibatches}",
        "run.total_frames=1_000_000_000",
        "metrics.every=1_000_000_000",
        "evaluator.every=1_000_000_000",
        "evaluator.at_start=false",
        "evaluator.episodes=1",
        "logger=[]",
        "hook=[]",
    ]
    config = load_config(example, [*sizes, *changes])
    config = replace(config, run=config.run.model_copy(update={"device": device}))  # a pretended one too
    return build(config, write=False).trainer


def seconds_of(iterator: Any, iterations: int) -> float:
    """Return how long so many iterations took."""
    began = perf_counter()
    for _ in range(iterations):
        next(iterator)
    return perf_counter() - began


def measured(num_envs: int, rounds: int, iterations: int) -> list[str]:
    """Return the rows of the table for a number of envs."""
    iterators = {side: iter(trainer_of(changes, num_envs)) for side, changes in SIDES.items()}
    first = {side: seconds_of(iterator, 2) for side, iterator in iterators.items()}  # compiles
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, iterator in iterators.items():
            seconds[side].append(seconds_of(iterator, iterations))
    frames, rows = STEPS * num_envs * iterations, []
    beside = seconds[next(iter(SIDES))]
    for side, taken in seconds.items():
        rate = statistics.median(frames / each for each in taken)
        ratio = statistics.median(other / each for other, each in zip(beside, taken, strict=True))
        rows.append(f"| {num_envs:,} | {side} | {rate:,.0f} | {ratio:.2f} | {first[side]:.1f} |")
    return rows


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for count in args.envs for row in measured(count, args.rounds, args.iterations)]
    heading = "| envs | side | frames/s | ratio to the first | first two iterations, s |\n|---|---|---|---|---|"
    about = f"{machine()}; one thread, {STEPS} steps of each env, 4 epochs of 4 minibatches, {args.rounds} rounds."
    text = "\n".join(["# PPO on CartPole with envs of tensors", "", about, "", heading, *rows, ""])
    (RESULTS / "device-envs.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
