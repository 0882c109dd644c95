"""Measures the largest resident memory of a run: rlcore, the bare loop and Stable-Baselines3 in turn.

    python benchmarks/run_memory.py --rounds 3 --peers-python .venv-peers/bin/python

Each side is a process of its own, the one of the speed benchmark with the same networks, minibatches and buffer. With
`--before`, the interpreter of another rlcore runs too.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Final

from bench import RESULTS, machine, run, spread

sys.path.insert(0, str(Path(__file__).with_name("speed")))
from off_policy import WORKLOADS

FRAMES: Final = {"dqn-cartpole": 20_000, "sac-halfcheetah": 3_000}


def main() -> None:
    """Run, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=list(FRAMES), choices=list(FRAMES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has Stable-Baselines3")
    parser.add_argument("--before", help="interpreter of another rlcore")
    args = parser.parse_args()
    sides = {"rlcore": (sys.executable, "rlcore_off_policy"), "bare loop": (sys.executable, "bare_off_policy")}
    sides["Stable-Baselines3"] = (args.peers_python, "sb3_off_policy")
    if args.before:
        sides["rlcore before"] = (args.before, "rlcore_off_policy")
    lines = [f"| work | frames | {' | '.join(f'{side}, MiB' for side in sides)} | rounds |"]
    lines.append("|---" * (len(sides) + 3) + "|")
    for workload in args.workloads:
        frames, threads = FRAMES[workload], WORKLOADS[workload].threads
        peaks: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, (python, script) in sides.items():
                if result := run(python, script, workload, frames, [], threads):
                    peaks[side].append(result["peak_rss_mib"])
        cells = [spread(values, "{:,.0f}") if values else "" for values in peaks.values()]
        lines.append(f"| {workload} | {frames:,} | {' | '.join(cells)} | {args.rounds} |")
    head = f"# Memory of a run\n\n{datetime.date.today()}, {machine()}. Largest resident memory: median (range)."
    text = f"{head}\n\n" + "\n".join(lines) + "\n"
    if not args.before:
        (RESULTS / "run-memory.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
