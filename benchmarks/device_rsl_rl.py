"""Frames per second of PPO in an env with rsl_rl's interface: rlcore's runner beside rsl_rl's and skrl.

    .venv/bin/python benchmarks/device_rsl_rl.py --peers-python .venv-skrl/bin/python --envs 1024 4096

The environment of the peers is that of `requirements-skrl.txt`. Each side is a process of its own, and trains one
round while the others wait, the sides in turn, so that all see the same machine. A figure is the median of the rounds,
a ratio that of the ratios of each round. Every side takes the same number of iterations; its return is that of its
policy after the last round, without noise.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench import RESULTS, machine

SIDE = Path(__file__).parent / "speed" / "vec_env_ppo.py"
SIDES = ("rlcore", "rlcore, compiled", "rsl_rl", "skrl")
STEPS = 24


class Side:
    """A process that trains when it is told to."""

    def __init__(self, name: str, num_envs: int, seed: int, peers_python: str) -> None:
        python = sys.executable if name.startswith("rlcore") else peers_python
        self._process = subprocess.Popen(
            [python, str(SIDE), name, str(num_envs), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, iterations: int | None) -> float:
        """Return the seconds of so many iterations, or at the end the return."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n" if iterations is None else f"{iterations}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def measured(num_envs: int, args: argparse.Namespace) -> list[str]:
    """Return the rows of the table for a number of envs."""
    sides = {name: Side(name, num_envs, args.seed, args.peers_python) for name in SIDES}
    first = {name: side.ask(2) for name, side in sides.items()}  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(args.rounds):
        for name, side in sides.items():
            seconds[name].append(side.ask(args.iterations))
    frames, rows = STEPS * num_envs * args.iterations, []
    for name, taken in seconds.items():
        rate = statistics.median(frames / each for each in taken)
        ratios = [
            statistics.median(other / each for other, each in zip(seconds[peer], taken, strict=True))
            for peer in ("rsl_rl", "skrl")
        ]
        cells = [f"{num_envs:,}", name, f"{rate:,.0f}", *(f"{ratio:.2f}" for ratio in ratios)]
        rows.append(f"| {' | '.join(cells)} | {sides[name].ask(None):.1f} | {first[name]:.1f} |")
    return rows


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", required=True, help="interpreter of the peers' environment")
    parser.add_argument("--envs", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=5, help="of a round")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rows = [row for count in args.envs for row in measured(count, args)]
    heading = "| envs | side | frames/s | times rsl_rl | times skrl | return | first two iterations, s |"
    line = "|---|---|---|---|---|---|---|"
    about = (
        f"{machine()}; one thread for each side, {STEPS} steps of each env, 5 epochs of 4 minibatches, "
        f"networks of 128 and 64, {args.rounds} rounds of {args.iterations} iterations, seed {args.seed}; "
        "rsl-rl-lib 5.5.1, skrl 2.1.1."
    )
    text = "\n".join(["# PPO in an env with rsl_rl's interface", "", about, "", heading, line, *rows, ""])
    (RESULTS / "device-rsl-rl.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
