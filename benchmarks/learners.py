"""Samples per second of groups of learners: PPO on rows of CartPole, with 0, 1 and 2 learners, eager and compiled.

    unshare -rn bash -c 'ip link set lo up; exec .venv/bin/python benchmarks/learners.py \
        --learners 0 1 2 --modes eager compile --rounds 7 --peers-python .venv-rllib/bin/python'

Each side is a process that waits for its turn and then takes one update of 4 epochs; in a round all have one turn after
the other. The ceiling is that of two processes that learn at once and share nothing. RLlib's learners are Ray actors,
and Ray listens on all interfaces, hence the namespace.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import RESULTS, machine, spread

SIDE = Path(__file__).parent / "speed" / "learners_side.py"


class Side:
    """A process that takes updates when it is told to.

    Args:
        python: interpreter.
        system: `rlcore` or `rllib`.
        learners: how many.
        mode: `eager` or `compile`.
        args: of the command line.
    """

    def __init__(self, python: str, system: str, learners: int, mode: str, args: argparse.Namespace) -> None:
        self.system, self.learners, self.mode = system, learners, mode
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [python, str(SIDE), system, str(learners), mode, args.net, str(args.minibatch), str(args.rows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        )
        self.read()
        self.first = time.perf_counter() - began
        self.rates: list[float] = []

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.system}, {self.learners} learners, {self.mode}"

    def begin(self) -> None:
        """Let it take an update."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def read(self) -> float:
        """Return the samples per second of the update that was begun."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return float(json.loads(line)["samples_per_s"])
        raise SystemExit(f"{self.system} with {self.learners} learners ended")

    def end(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def foreign_load(seconds: float = 1.0) -> float:
    """Return how many processors others use while this process sleeps."""

    def busy() -> float:
        fields = [float(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")

    before = busy()
    time.sleep(seconds)
    return (busy() - before) / seconds


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--modes", nargs="+", default=["eager"], choices=["eager", "compile"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--net", default="2x64", help="layers x width")
    parser.add_argument("--minibatch", type=int, default=128, help="rows, of each learner")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--peers-python", help="interpreter with Ray; without it RLlib does not run")
    parser.add_argument("--loaded", action="store_true", help="go on although others use the machine")
    args = parser.parse_args()
    load = foreign_load()
    if load > 0.15 and not args.loaded:
        raise SystemExit(f"others use {load:.2f} processors, so no figure counts; --loaded takes ratios all the same")
    sides = [Side(sys.executable, "rlcore", count, mode, args) for count in args.learners for mode in args.modes]
    copies = [Side(sys.executable, "rlcore", 0, mode, args) for mode in args.modes]
    if args.peers_python:
        sides += [Side(args.peers_python, "rllib", count, "eager", args) for count in args.learners]
    ceilings: dict[str, list[float]] = {mode: [] for mode in args.modes}
    for _ in range(args.rounds):
        for side in sides:
            side.begin()
            side.rates.append(side.read())
        for copy in copies:
            twin = next(s for s in sides if (s.system, s.learners, s.mode) == ("rlcore", args.learners[0], copy.mode))
            for both in (copy, twin):
                both.begin()
            ceilings[copy.mode].append(copy.read() + twin.read())
    for side in [*sides, *copies]:
        side.end()
    write(args, sides, ceilings, load)


def write(args: argparse.Namespace, sides: list[Side], ceilings: dict[str, list[float]], load: float) -> None:
    """Write the table."""
    base = next((side for side in sides if side.system == "rllib"), sides[0])
    rows = [f"| side | samples/s | times {base.name} | seconds to the first result |", "|---|---|---|---|"]
    for side in sides:
        ratio = [own / other for own, other in zip(side.rates, base.rates, strict=True)]
        rate = statistics.median(side.rates)
        rows.append(f"| {side.name} | {rate:,.0f} | {spread(ratio)} | {side.first:.1f} |")
    for mode, rates in ceilings.items():
        rows.append(f"| two that share nothing, {mode} | {statistics.median(rates):,.0f} | | |")
    text = (
        f"# Groups of learners\n\n{machine()}; others used {load:.2f} processors. Net {args.net}, {args.rows:,} rows, "
        f"4 epochs, minibatches of {args.minibatch} per learner; medians of {args.rounds} rounds, sides in turn.\n\n"
        + "\n".join(rows)
        + "\n"
    )
    print(text)
    (RESULTS / "learners.md").write_text(text)


if __name__ == "__main__":
    main()
