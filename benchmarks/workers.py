"""Frames per second of a collector with worker processes against the one in the process, for envs that cost time.

Each round times every collector in turn, on the same envs; between two batches the process of the learner computes
for as long as a batch of one process takes, times `--learning`. Ratios are of medians. What an env costs is computed,
not slept, so that the processors limit all of them alike.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from bench import RESULTS, machine

from rlcore.testing import make_run

STEPS = 32


class Costly(gymnasium.Env[Any, Any]):
    """Computes for some microseconds in each step.

    Args:
        microseconds: of each step.
    """

    observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, microseconds: float) -> None:
        self._seconds = microseconds / 1e6
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Compute."""
        compute(self._seconds)
        self._steps += 1
        return np.full(8, self._steps / 100, np.float32), 1.0, self._steps == 100, False, {}


def compute(seconds: float) -> None:
    """Keep a processor busy."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def collector_of(num_envs: int, microseconds: float, **keys: Any) -> Any:
    """Return a collector over costly envs."""
    env = {
        "use": "gymnasium",
        "id": "Costly-v0",
        "num_envs": num_envs,
        "vectorization": "serial",
        "kwargs": {"microseconds": microseconds},
    }
    sections = {"env": env, "model": {"use": "mlp"}, "collector": {"frames_per_batch": STEPS * num_envs, **keys}}
    return make_run(sections=sections).trainer.collector


def seconds_of(collector: Any, batches: int, learning: float) -> float:
    """Return the seconds of an iteration."""
    began = time.perf_counter()
    for _ in range(batches):
        collector.collect()
        compute(learning)
        collector.update_model()
    return (time.perf_counter() - began) / batches


def measured(num_envs: int, microseconds: float, learning: float, rounds: int) -> dict[str, float]:
    """Return frames per second of each collector."""
    workers = {"use": "parallel:workers", "start_method": "fork", "num_workers": 2}
    collectors = {
        "local": collector_of(num_envs, microseconds, use="local"),
        "2 workers, sync": collector_of(num_envs, microseconds, **workers),
        "2 workers, async": collector_of(num_envs, microseconds, **workers, mode="async"),
    }
    pause = learning * num_envs * STEPS * microseconds / 1e6
    found: dict[str, list[float]] = {name: [] for name in collectors}
    for collector in collectors.values():
        seconds_of(collector, 2, 0)
    for _ in range(rounds):
        for name, collector in collectors.items():
            found[name].append(num_envs * STEPS / seconds_of(collector, 4, pause))
            if "async" in name:
                collector.load_state_dict(collector.state_dict())  # so that nothing goes on while others are timed
    for collector in collectors.values():
        collector.close()
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--num-envs", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # of the episodes that are dropped between two measurements
    gymnasium.register("Costly-v0", Costly)
    lines = []
    for learning in (0.0, 0.5):
        for microseconds in (0, 20, 200, 1000):
            found = measured(args.num_envs, microseconds, learning, args.rounds)
            ratios = " | ".join(f"{value / found['local']:.2f}" for value in found.values())
            lines.append(f"| {microseconds} | {learning} | {found['local']:,.0f} | {ratios} |")
            print(lines[-1], flush=True)
    head = (
        "| microseconds of a step | learning, as a share of collecting | local, frames/s | local | 2 workers, sync "
        "| 2 workers, async |\n|---|---|---|---|---|---|\n"
    )
    load = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    text = (
        f"# Envs in worker processes\n\n{machine()}; {load}. {args.num_envs} envs, {STEPS} steps a batch; ratios of "
        f"frames per second to the collector `local`, medians of {args.rounds} rounds.\n\n{head}"
        + "\n".join(lines)
        + "\n"
    )
    (RESULTS / "workers.md").write_text(text)


if __name__ == "__main__":
    main()
