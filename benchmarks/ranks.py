"""Frames per second of one config with several ranks against one process, and against what the machine can give.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/ranks.py examples/ppo-cartpole.toml examples/ppo-idp.toml

Strong scaling divides the batch of the config among the ranks; weak scaling gives each rank a batch as large as that of
the config, from as many envs. A config with fewer envs than ranks has as many as ranks on all sides. The ceiling is
that of as many processes that train the config at once and share nothing.
In a round all sides have one turn after the other, and ratios are of rounds. Startup does not count, nor do the first
iterations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from bench import RESULTS, machine, spread
from learners import foreign_load

HERE = Path(__file__).resolve().parent
HOOK = HERE / "speed" / "iteration_times.py"
WARM_UP = 2
# iterations of processes that share nothing, which do not begin at the same moment
LONGER = 3
# what weak scaling multiplies
WHOLE = {"env": ("num_envs",), "collector": ("frames_per_batch",), "buffer": ("minibatch_size",)}

Times = list[tuple[float, int]]


class Training:
    """A run of a config that notes when each iteration ended.

    Args:
        values: of the config.
        folder: for the run.
        name: of the run.
        iterations: after those to warm up.
    """

    def __init__(self, values: dict[str, Any], folder: Path, name: str, iterations: int) -> None:
        self._path = folder / f"{name}.times"
        frames = values["collector"]["frames_per_batch"] * (WARM_UP + iterations)
        watch = {"use": "iteration-times", "path": str(self._path)}
        values = values | {
            "run": values["run"] | {"name": name, "folder": str(folder), "total_frames": frames},
            "plugins": {"files": [str(HOOK)]},
            "logger": [{"use": "csv"}],
            "hook": [watch],
        }
        values.pop("evaluator", None)
        config = folder / f"{name}.toml"
        config.write_text(tomli_w.dumps(values))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rlcore", "train", str(config), "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def times(self) -> Times:
        """Return clock and frames after each iteration but the first ones."""
        _, errors = self._process.communicate()
        if self._process.returncode:
            raise SystemExit(errors)
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return [(float(clock), int(frames)) for clock, frames in lines][WARM_UP - 1 :]


def rate(times: Times, begin: float = 0.0, end: float = float("inf")) -> float:
    """Return the frames per second of the iterations that lie between two moments."""
    inside = [(clock, frames) for clock, frames in times if begin <= clock <= end]
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def together(every: list[Times]) -> float:
    """Return the frames per second of runs while all of them trained."""
    begin, end = max(times[0][0] for times in every), min(times[-1][0] for times in every)
    if any(sum(begin <= clock <= end for clock, _ in times) < 2 for times in every):
        raise SystemExit("processes that share nothing did not train at the same time; give them more --iterations")
    return sum(rate(times, begin, end) for times in every)


def with_ranks(values: dict[str, Any], count: int, weak: bool) -> dict[str, Any]:
    """Return the config of several ranks."""
    larger = {
        section: values[section] | {key: values[section][key] * count for key in keys}
        for section, keys in WHOLE.items()
        if weak
    }
    return values | larger | {"ranks": {"count": count}}


def measure(path: Path, args: argparse.Namespace) -> dict[str, list[float]]:
    """Return the frames per second of each side, by round."""
    values = tomllib.loads(path.read_text())
    count = args.ranks
    values["env"]["num_envs"] = max(count, values["env"]["num_envs"])
    sides: dict[str, dict[str, Any]] = {
        "1 process": values,
        f"{count} ranks, strong": with_ranks(values, count, weak=False),
        f"{count} ranks, weak": with_ranks(values, count, weak=True),
    }
    found: dict[str, list[float]] = {side: [] for side in [*sides, f"{count} that share nothing"]}
    for number in range(args.rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for index, (side, config) in enumerate(sides.items()):
                found[side].append(rate(Training(config, folder, f"side-{index}", args.iterations).times()))
            longer = LONGER * args.iterations
            copies = [Training(values, folder, f"copy-{index}", longer) for index in range(count)]
            found[f"{count} that share nothing"].append(together([copy.times() for copy in copies]))
        print(
            f"{path.stem}, round {number + 1}: " + ", ".join(f"{s} {r[-1]:,.0f}" for s, r in found.items()), flush=True
        )
    return found


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="+", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--loaded", action="store_true", help="go on although others use the machine")
    args = parser.parse_args()
    load = foreign_load()
    if load > 0.15 and not args.loaded:
        raise SystemExit(f"others use {load:.2f} processors, so no figure counts; --loaded takes ratios all the same")
    rows = ["| config | side | frames/s | times 1 process | of the ceiling |", "|---|---|---|---|---|"]
    for path in args.configs:
        found = measure(path, args)
        alone, ceiling = found["1 process"], found[f"{args.ranks} that share nothing"]
        for side, rates in found.items():
            ratios = [rate / base for rate, base in zip(rates, alone, strict=True)]
            reached = [rate / most for rate, most in zip(rates, ceiling, strict=True)]
            last = "" if rates is ceiling or rates is alone else f"{statistics.median(reached):.2f}"
            rows.append(f"| {path.stem} | {side} | {statistics.median(rates):,.0f} | {spread(ratios)} | {last} |")
    text = (
        f"# Ranks\n\n{machine()}; others used {load:.2f} processors at the beginning, load {os.getloadavg()[0]:.1f} at "
        f"the end. Medians of {args.rounds} rounds of {args.iterations} iterations, sides in turn, with the range.\n\n"
        + "\n".join(rows)
        + "\n"
    )
    print(text)
    (RESULTS / "ranks.md").write_text(text)


if __name__ == "__main__":
    main()
