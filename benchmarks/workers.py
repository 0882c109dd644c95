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
from rlcore_plugin_testing import make_run

STEPS = 32
MOST_FOREIGN = 0.15


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


WORKERS = {"use": "parallel:workers", "start_method": "fork", "num_workers": 2}
CENTRAL = {"use": "parallel:central", "start_method": "fork", "num_workers": 2}
MODES: dict[str, dict[str, Any]] = {
    "sync": WORKERS,
    "processes": {**WORKERS, "processes": "always"},
    "async": {**WORKERS, "mode": "async"},
    "central": CENTRAL,
    "alternating": {**CENTRAL, "alternating": True},
}


def measured(modes: list[str], num_envs: int, microseconds: float, learning: float, rounds: int) -> dict[str, float]:
    """Return frames per second of each collector."""
    collectors = {"local": collector_of(num_envs, microseconds, use="local")}
    collectors |= {mode: collector_of(num_envs, microseconds, **MODES[mode]) for mode in modes}
    pause = learning * num_envs * STEPS * microseconds / 1e6
    found: dict[str, list[float]] = {name: [] for name in collectors}
    for collector in collectors.values():
        seconds_of(collector, 2, 0)
    for _ in range(rounds):
        for name, collector in collectors.items():
            found[name].append(num_envs * STEPS / seconds_of(collector, 4, pause))
            if name == "async":
                collector.load_state_dict(collector.state_dict())  # so that nothing goes on while others are timed
    for collector in collectors.values():
        collector.close()
    return {name: statistics.median(values) for name, values in found.items()}


def foreign_share(seconds: float = 1.0) -> float:
    """Return which share of all processors others use while this process sleeps."""

    def busy() -> tuple[int, int]:
        with open("/proc/stat") as stat:
            ticks = [int(word) for word in stat.readline().split()[1:]]
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks)

    before = busy()
    time.sleep(seconds)
    after = busy()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--modes", nargs="+", choices=sorted(MODES), default=["sync", "async"])
    parser.add_argument("--microseconds", nargs="+", type=float, default=[0, 20, 200, 1000], help="of a step")
    parser.add_argument("--learning", nargs="+", type=float, default=[0.0, 0.5], help="as a share of collecting")
    parser.add_argument("--loaded", action="store_true", help="measure although others use the processors too")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # of the episodes that are dropped between two measurements
    foreign = foreign_share()
    if foreign > MOST_FOREIGN and not args.loaded:
        raise SystemExit(f"others use {foreign:.0%} of the processors, so that ratios mean nothing; wait, or --loaded")
    gymnasium.register("Costly-v0", Costly)
    lines = []
    for learning in args.learning:
        for microseconds in args.microseconds:
            found = measured(args.modes, args.num_envs, microseconds, learning, args.rounds)
            ratios = " | ".join(f"{value / found['local']:.2f}" for value in found.values())
            lines.append(f"| {microseconds:g} | {learning} | {found['local']:,.0f} | {ratios} |")
            print(lines[-1], flush=True)
    names = ("microseconds of a step", "learning, as a share of collecting", "local, frames/s", "local", *args.modes)
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    load = f"{os.cpu_count()} processors, of which others used {foreign:.0%}"
    text = (
        f"# Envs in worker processes\n\n{machine()}; {load}. {args.num_envs} envs, {STEPS} steps a batch; ratios of "
        f"frames per second to the collector `local`, medians of {args.rounds} rounds, 2 workers.\n\n{head}"
        + "\n".join(lines)
        + "\n"
    )
    if not args.loaded:
        (RESULTS / "workers.md").write_text(text)


if __name__ == "__main__":
    main()
