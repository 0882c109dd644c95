"""Frames per second of SAC and TD3 on 256 pendulums of tensors, with transitions on the device, beside skrl.

    .venv-skrl/bin/python benchmarks/device_replay.py --rounds 5

Every side trains in this process, a slice of its run after the other and the sides in turn, so that all see the same
machine. On the CPU seconds are those of the processor, which work of others on the machine moves less than the clock.
A figure is the median of the rounds, a ratio that of the ratios of each round. Evaluations and checkpoints
are left out. The return is the mean of the episodes that ended last in the timed run, with its exploration.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
from bench import RESULTS, machine

from rlcore import load_config
from rlcore.run.build import build

sys.path.insert(0, str(Path(__file__).with_name("speed")))
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True)
class Sizes:
    """What is alike on all sides."""

    envs: int = 256
    hidden: list[int] = field(default_factory=lambda: [64, 64])
    minibatch: int = 256
    updates: int = 16
    capacity: int = 200_192
    warmup: int = 5_120
    learning_rate: float = 1e-3
    device: str = "cpu"


@dataclass
class Side:
    """A run that goes on step by step.

    Attributes:
        step: steps every env once, and updates.
        latest_return: returns the mean return of the episodes that ended last.
        rates: frames per second of each round.
    """

    step: Callable[[], object]
    latest_return: Callable[[], float]
    rates: list[float] = field(default_factory=list)

    def seconds(self, iterations: int, device: str) -> float:
        """Return the seconds that so many steps take."""
        clock = process_time if device == "cpu" else perf_counter
        began = clock()
        for _ in range(iterations):
            self.step()
        if device != "cpu":
            torch.cuda.synchronize()
        return clock() - began


def rlcore_side(algorithm: str, sizes: Sizes, compiled: bool) -> Side:
    """Return a run of rlcore."""
    flag = "true" if compiled else "false"
    changes = [
        f"run.device={sizes.device}",
        "run.total_frames=1_000_000_000",
        "env.use=torch-envs",
        f"env.num_envs={sizes.envs}",
        f"model.hidden={sizes.hidden}",
        f"model.random_frames={sizes.warmup}",
        "loss.gamma=0.99",
        "collector.use=device",
        f"collector.frames_per_batch={sizes.envs}",
        f"collector.compile={flag}",
        f"learner.compile={flag}",
        f"buffer.capacity={sizes.capacity}",
        f"buffer.minibatch_size={sizes.minibatch}",
        f"buffer.updates_per_batch={sizes.updates}",
        f"buffer.warmup_frames={sizes.warmup}",
        f"metrics.every={200 * sizes.envs}",  # the episodes are as long
        "evaluator.every=1_000_000_000",
        "evaluator.at_start=false",
        "hook=[]",
    ]
    file = "sac-pendulum-device.toml" if algorithm == "sac" else "td3-pendulum.toml"
    optimizers = 1 if algorithm == "sac" else 2
    changes += [f"optimizer.{number}.lr={sizes.learning_rate}" for number in range(optimizers)]
    trainer: Any = build(load_config(EXAMPLES / file, changes), write=False).trainer
    iterator = iter(trainer)
    return Side(lambda: next(iterator), lambda: float(trainer.metrics.latest.get("episode/return", "nan")))


def skrl_side(algorithm: str, sizes: Sizes) -> Side:
    """Return a run of skrl on the same env."""
    from skrl_replay import trainer_of

    config = load_config(EXAMPLES / "sac-pendulum-device.toml", [f"run.device={sizes.device}", "hook=[]"])
    tensors = build(config, write=False).trainer.parts.collector._env
    trainer, env = trainer_of(algorithm, tensors, sizes)
    return Side(trainer.train, lambda: float(env.returns[-1]) if env.returns else float("nan"))


def sides_of(algorithm: str, sizes: Sizes, compiled: bool) -> dict[str, Side]:
    """Return the sides by name; that of skrl where it is installed."""
    sides = {"rlcore": rlcore_side(algorithm, sizes, False)}
    if compiled:
        sides["rlcore, compiled"] = rlcore_side(algorithm, sizes, True)
    try:
        sides["skrl 2.1.1"] = skrl_side(algorithm, sizes)
    except ModuleNotFoundError as error:
        print(f"without skrl: {error}", file=sys.stderr)
    return sides


def measured(algorithm: str, sizes: Sizes, rounds: int, iterations: int, compiled: bool) -> list[str]:
    """Return the rows of the table for an algorithm."""
    torch.manual_seed(1)
    sides = sides_of(algorithm, sizes, compiled)
    for side in sides.values():
        side.seconds(sizes.warmup // sizes.envs + 10, sizes.device)  # compiles
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else list(reversed(sides)):
            seconds = sides[name].seconds(iterations, sizes.device)
            sides[name].rates.append(iterations * sizes.envs / seconds)
    rows, last = [], list(sides.values())[-1]
    for name, side in sides.items():
        ratio = statistics.median(mine / its for mine, its in zip(side.rates, last.rates, strict=True))
        rate, slowest, fastest = statistics.median(side.rates), min(side.rates), max(side.rates)
        rows.append(
            f"| {algorithm.upper()} | {name} | {rate:,.0f} ({slowest:,.0f} to {fastest:,.0f}) | {ratio:.2f} "
            f"| {side.latest_return():,.0f} |"
        )
    return rows


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", default=["sac", "td3"], choices=["sac", "td3"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=150, help="steps of every env in a round, of each side")
    parser.add_argument("--eager", action="store_true", help="leave out what is compiled")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes, rows = Sizes(device=args.device), []
    heading = (
        "| algorithm | side | frames/s, median and range | ratio to the last side | return |\n|---|---|---|---|---|"
    )
    seconds = ", seconds of the processor" if args.device == "cpu" else ""
    hidden = " x ".join(map(str, sizes.hidden))
    about = (
        f"{machine()}; {args.device}, one thread{seconds}; {sizes.envs} envs, {sizes.updates} updates of "
        f"{sizes.minibatch} after a step of each env, networks of {hidden}; {args.rounds} rounds of "
        f"{args.iterations * sizes.envs:,} frames, the sides in turn. skrl's actor of SAC has one deviation for all "
        "observations, ours one for each."
    )
    for algorithm in args.algorithms:
        rows += measured(algorithm, sizes, args.rounds, args.iterations, not args.eager)
        load = f"Load average at the end: {os.getloadavg()[1]:.1f}."  # more than 1 is other work, which makes noise
        text = "\n".join(
            ["# SAC and TD3 with transitions on the device", "", f"{about} {load}", "", heading, *rows, ""]
        )
        (RESULTS / "device-replay.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
