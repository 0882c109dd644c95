"""Runs the speed comparison and writes the table: `make bench`, or with flags for a part of it.

Machines differ and drift, so a figure only counts against another of the same run: rlcore and the bare loop run in
turn, pair by pair, each in a process of its own, and the median of the pairs' ratios is reported with its spread. Each
peer runs in the same rounds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
# what each table is made from
ROWS = RESULTS / "rows"
FRAMES = {"idp": 8_000, "cartpole": 51_200, "cartpole64": 409_600}
PEER_FRAMES = {"idp": 5_000, "cartpole": 15_360, "cartpole64": 81_920}
TORCHRL_FRAMES = {"idp": 4_000, "cartpole": 4_096, "cartpole64": 24_576}
PEERS = ("sb3", "cleanrl", "tianshou", "torchrl")


def run(
    python: str, script: str, workload: str, frames: int, flags: list[str], threads: int = 1
) -> dict[str, Any] | None:
    """Run one script and return its JSON line; None, with the reason on stderr, when it failed."""
    command = [python, str(HERE / "speed" / f"{script}.py"), "--workload", workload, "--frames", str(frames), *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
    try:
        result = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        print(f"{script} {workload} failed: {done.stderr[-500:]}", file=sys.stderr)
        return None
    print(f"  {result['peer']:<20} {workload:<11} {result['frames_per_s']:>10,.0f} frames/s", flush=True)
    return result if isinstance(result, dict) else None


def pairs(workload: str, count: int, compiled: bool) -> list[dict[str, Any]]:
    """Return pairs of rlcore and the bare loop, in turn, each pair in the other order than the one before."""
    flags = ["--compile"] if compiled else []
    found = []
    for number in range(count):
        order = ["rlcore_ppo", "bare_ppo"] if number % 2 == 0 else ["bare_ppo", "rlcore_ppo"]
        results = {script: run(sys.executable, script, workload, FRAMES[workload], flags) for script in order}
        if all(results.values()):
            found.append({"workload": workload, "compiled": compiled, **results})
    return found


def before_and_after(workload: str, count: int, compiled: bool, python: str) -> list[dict[str, Any]]:
    """Return pairs of rlcore here and in another environment, such as that of the commit before, in turn."""
    flags = ["--compile"] if compiled else []
    pythons = {"after": sys.executable, "before": python}
    found = []
    for number in range(count):
        order = ["after", "before"] if number % 2 == 0 else ["before", "after"]
        results = {name: run(pythons[name], "rlcore_ppo", workload, FRAMES[workload], flags) for name in order}
        if all(results.values()):
            found.append({"workload": workload, "compiled": compiled, **results})
    return found


def peer_rounds(workload: str, rounds: int, python: str) -> list[dict[str, Any]]:
    """Return rounds of rlcore, eager and compiled, and every peer."""
    found = []
    for _ in range(rounds):
        results = {
            "eager": run(sys.executable, "rlcore_ppo", workload, FRAMES[workload], []),
            "compiled": run(sys.executable, "rlcore_ppo", workload, FRAMES[workload], ["--compile"]),
        }
        for peer in PEERS:
            frames = (TORCHRL_FRAMES if peer == "torchrl" else PEER_FRAMES)[workload]
            results[f"{peer}_ppo"] = run(python, f"{peer}_ppo", workload, frames, [])
        found.append({"workload": workload, **{name: result for name, result in results.items() if result}})
    return found


def spread(values: list[float], form: str = "{:.2f}") -> str:
    """Return median and range."""
    low, middle, high = (form.format(value) for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low} to {high})"


def pair_table(paired: list[dict[str, Any]], first: tuple[str, str], second: tuple[str, str]) -> list[str]:
    """Return a table of pairs as lines of Markdown; each of the two is its key in a row and its title."""
    lines = [f"| work | mode | {first[1]}, frames/s | {second[1]}, frames/s | ratio of pairs | pairs |"]
    lines.append("|---|---|---|---|---|---|")
    for workload, compiled in sorted({(row["workload"], row["compiled"]) for row in paired}):
        rows = [row for row in paired if (row["workload"], row["compiled"]) == (workload, compiled)]
        speeds = [[row[key]["frames_per_s"] for row in rows] for key, _ in (first, second)]
        ratios = spread([a / b for a, b in zip(*speeds, strict=True)], "{:.3f}")
        mode = "compiled" if compiled else "eager"
        cells = [workload, mode, *(spread(column, "{:,.0f}") for column in speeds), ratios, str(len(rows))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table(paired: list[dict[str, Any]], peers: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    lines = pair_table(paired, ("rlcore_ppo", "rlcore"), ("bare_ppo", "bare loop"))
    if peers:
        head = "| work | peer | frames/s | rlcore, eager / peer | rlcore, compiled / peer | rounds |"
        lines += ["", head, "|---|---|---|---|---|---|"]
    for workload in dict.fromkeys(row["workload"] for row in peers):
        for name in [f"{peer}_ppo" for peer in PEERS]:
            rows = [row for row in peers if row["workload"] == workload and name in row]
            if rows:
                speeds = [row[name]["frames_per_s"] for row in rows]
                cells = [workload, name.removesuffix("_ppo"), spread(speeds, "{:,.0f}")]
                for mode in ("eager", "compiled"):
                    both = [(row[mode], row[name]) for row in rows if mode in row]
                    cells.append(spread([ours["frames_per_s"] / peer["frames_per_s"] for ours, peer in both]))
                lines.append(f"| {' | '.join(cells)} | {len(rows)} |")
    return "\n".join(lines)


def machine() -> str:
    """Describe the machine: processor, cores, versions."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    from importlib.metadata import version

    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {version('torch')}"


def main() -> None:
    """Run and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", default=list(FRAMES), choices=list(FRAMES))
    parser.add_argument("--pairs", type=int, default=10, help="pairs with the bare loop per workload and mode")
    parser.add_argument("--rounds", type=int, default=3, help="rounds with the peers per workload")
    parser.add_argument("--modes", nargs="+", default=["eager", "compiled"], choices=["eager", "compiled"])
    parser.add_argument("--peers-python", help="interpreter of the peers' environment; without it no peer runs")
    parser.add_argument("--before", help="interpreter of another rlcore; pairs of both are run and printed, no more")
    parser.add_argument("--name", default="speed", help="name of the files under results/")
    args = parser.parse_args()
    if args.before:
        rows = [
            row
            for workload in args.workloads
            for mode in args.modes
            for row in before_and_after(workload, args.pairs, mode == "compiled", args.before)
        ]
        print("\n".join(pair_table(rows, ("after", "after"), ("before", "before"))))
        return
    paired, peers = [], []
    for workload in args.workloads:
        for mode in args.modes:
            paired += pairs(workload, args.pairs, mode == "compiled")
        if args.peers_python:
            peers += peer_rounds(workload, args.rounds, args.peers_python)
    RESULTS.mkdir(exist_ok=True)
    (ROWS / f"{args.name}.json").write_text(json.dumps({"pairs": paired, "peers": peers}, indent=1) + "\n")
    date = datetime.date.today().isoformat()
    text = f"# Speed, PPO, one thread\n\n{date}, {machine()}.\n\n{table(paired, peers)}\n"
    (RESULTS / f"{args.name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
