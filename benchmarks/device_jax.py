"""Frames per second of PPO and PQN on CartPole with envs of tensors, beside rejax on gymnax.

    .venv/bin/python benchmarks/device_jax.py --peers-python .venv-jax/bin/python

The sides train the same number of frames, in turn, on the same core: rlcore in this process, rejax in one of its own
that waits meanwhile. Seconds are those of the processor, as others may work on the machine, but for those until the
first two iterations are done, which compile. A figure is the median of the rounds, a ratio that of the ratios of each
round. The return is that of the greedy policy after as many frames, over 100 episodes; its mean over the seeds, with
their range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, Protocol

import torch
from bench import HERE, RESULTS, machine
from device_envs import seconds_of, trainer_of

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
DEVICE: Final = ["env.use=torch-envs", "collector.use=device"]
COMPILED: Final = ["collector.compile=true", "learner.compile=true"]
EPISODES: Final = 100
# after so many frames PQN takes no more random actions than it does later on
EXPLORING: Final = 100_000
TOTAL: Final = 1_000_000_000


@dataclass(frozen=True)
class Work:
    """What both sides do.

    Attributes:
        algorithm: of rejax.
        steps: of each env in an iteration.
        minibatches: of an epoch, of which there are 4.
        example: what rlcore's config begins with.
        changes: of that config.
        settings: of rejax.
    """

    algorithm: str
    steps: int
    minibatches: int
    example: str
    changes: tuple[str, ...]
    settings: dict[str, Any]


WORK: Final = {
    "PPO": Work(
        "ppo",
        128,
        4,
        "ppo-cartpole.toml",
        ("env.id=CartPole-v1", "scheduler=[]", "optimizer.lr=1e-3"),
        {"learning_rate": 1e-3, "max_grad_norm": 0.5, "agent_kwargs": {"activation": "tanh"}},
    ),
    "PQN": Work(
        "pqn",
        64,
        16,
        "pqn-cartpole.toml",
        (
            "scheduler=[]",
            "optimizer.use=adam",
            "model.hidden=[64,64]",
            f"model.epsilon_fraction={EXPLORING / TOTAL}",
            "estimator.lmbda=0.9",
        ),
        {
            "learning_rate": 5e-4,
            "max_grad_norm": 10.0,
            "total_timesteps": EXPLORING,
            "exploration_fraction": 1.0,
            "td_lambda": 0.9,
        },
    ),
}


class Side(Protocol):
    """One that trains.

    Attributes:
        compiling: seconds of compiling, where that comes before the first iteration.
    """

    compiling: float

    def begin(self, seed: int) -> None:
        """Begin again with another seed."""

    def seconds(self, iterations: int) -> float:
        """Train so far, and return how long the processor took."""

    def mean_return(self) -> float:
        """Return that of the greedy policy."""


class Ours:
    """rlcore; what it compiles, it compiles in its first iterations."""

    compiling = 0.0

    def __init__(self, work: Work, num_envs: int, changes: list[str]) -> None:
        self._changes = [*work.changes, *DEVICE, *changes, f"evaluator.episodes={EPISODES}"]
        self._arguments = num_envs, EXAMPLES / work.example, work.steps, work.minibatches
        self.begin(1)

    def begin(self, seed: int) -> None:
        """Begin again with another seed."""
        self._trainer = trainer_of([*self._changes, f"run.seed={seed}"], *self._arguments)
        self._iterator = iter(self._trainer)

    def seconds(self, iterations: int) -> float:
        """Train so far, and return how long the processor took."""
        began = process_time()
        seconds_of(self._iterator, iterations)
        return process_time() - began

    def mean_return(self) -> float:
        """Return that of the greedy policy."""
        return statistics.mean(self._trainer.evaluate().returns)


class Rejax:
    """rejax, in a process that stays."""

    def __init__(self, work: Work, num_envs: int, python: str) -> None:
        settings = {
            **work.settings,
            "num_envs": num_envs,
            "num_steps": work.steps,
            "num_epochs": 4,
            "num_minibatches": work.minibatches,
        }
        command = [python, str(HERE / "speed" / "rejax_device.py"), work.algorithm, json.dumps(settings)]
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        self._process = subprocess.Popen(
            [*command, "--episodes", str(EPISODES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"XLA_FLAGS": flags},
        )
        self.compiling = self._answer()

    def begin(self, seed: int) -> None:
        """Begin again with another seed."""
        self._asked(f"seed {seed}")

    def seconds(self, iterations: int) -> float:
        """Train so far, and return how long the processor took."""
        return self._asked(f"train {iterations}")

    def mean_return(self) -> float:
        """Return that of the greedy policy."""
        return self._asked("return")

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()

    def _asked(self, line: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        return float(json.loads(self._process.stdout.readline()))


def measured(name: str, num_envs: int, python: str, rounds: int, iterations: int, seeds: int) -> list[str]:
    """Return the rows of the table for an algorithm and a number of envs."""
    work = WORK[name]
    rejax = Rejax(work, num_envs, python)
    sides: dict[str, Side] = {
        "rejax": rejax,
        "rlcore": Ours(work, num_envs, []),
        "rlcore, compiled": Ours(work, num_envs, COMPILED),
    }
    first: dict[str, float] = {}
    for side, trainer in sides.items():
        began = perf_counter()
        trainer.seconds(2)
        first[side] = perf_counter() - began + trainer.compiling
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, trainer in sides.items():
            seconds[side].append(trainer.seconds(iterations))
    returns = {side: [trainer.mean_return()] for side, trainer in sides.items()}
    for seed in range(2, seeds + 1):
        for side, trainer in sides.items():
            trainer.begin(seed)
            trainer.seconds(2 + rounds * iterations)
            returns[side].append(trainer.mean_return())
    frames, rows = work.steps * num_envs * iterations, []
    for side, taken in seconds.items():
        rate = statistics.median(frames / each for each in taken)
        ratios = [other / each for other, each in zip(seconds["rejax"], taken, strict=True)]
        ratio = _spread(statistics.median(ratios), ratios, 2)
        reached = _spread(statistics.mean(returns[side]), returns[side], 0)
        rows.append(f"| {name} | {num_envs:,} | {side} | {rate:,.0f} | {ratio} | {first[side]:.1f} | {reached} |")
    rejax.close()
    return rows


def _spread(middle: float, values: list[float], digits: int) -> str:
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main() -> None:
    """Measure, and write the table after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", required=True, help="of an environment with requirements-jax.txt")
    parser.add_argument("--work", nargs="+", default=["PPO:64", "PPO:1024", "PQN:64"], metavar="ALGORITHM:ENVS")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=5, help="of the returns; speed is measured with the first")
    parser.add_argument("--frames", type=int, default=400_000, help="of each side, in the measured rounds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # of what is started too: JAX takes all that it sees
    peers = "rejax 0.1.3, gymnax 0.0.9, jax 0.10.2"
    about = f"{machine()}; {peers}; seconds of one core, 4 epochs, 2 x 64, {args.rounds} rounds, {args.seeds} seeds."
    heading = [
        "| algorithm | envs | side | frames/s | ratio to rejax (range) | first two iterations, compiled, s | return |",
        "|---|---|---|---|---|---|---|",
    ]
    rows: list[str] = []
    for name, count in (each.split(":") for each in args.work):
        work = WORK[name]
        iterations = max(1, round(args.frames / args.rounds / (work.steps * int(count))))
        rows += measured(name, int(count), args.peers_python, args.rounds, iterations, args.seeds)
        text = "\n".join(["# Envs of tensors beside rejax on CartPole", "", about, "", *heading, *rows, ""])
        (RESULTS / "device-jax.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
