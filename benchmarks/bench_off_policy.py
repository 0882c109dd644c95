"""Runs the off-policy speed comparison of one workload, in rounds of rlcore, the bare loop and the peers.

    python benchmarks/bench_off_policy.py td3-halfcheetah --rounds 3 --peers-python .venv-peers/bin/python

Each workload has a file of its own under results/. DQN runs with one thread, the others with two. A ratio is that of
two processes of one round; every round has the other order than the one before.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from bench import RESULTS, ROWS, machine, run, spread

sys.path.insert(0, str(Path(__file__).with_name("speed")))
from off_policy import WORKLOADS

# by workload, those that have the algorithm
PEERS = {
    "dqn-cartpole": ("sb3", "cleanrl", "torchrl", "tianshou"),
    "sac-halfcheetah": ("sb3", "cleanrl", "torchrl", "tianshou"),
    "td3-halfcheetah": ("sb3", "cleanrl", "torchrl", "tianshou"),
    "redq-halfcheetah": ("torchrl",),
    "dqn-pong": ("sb3",),
}


def one_round(
    workload: str, number: int, modes: list[str], share: float, python: str | None, before: str | None = None
) -> dict[str, Any]:
    """Return the results of one round by name: `rlcore eager`, `bare eager`, and so on; then the peers.

    With `before`, the interpreter of another rlcore, that runs in the place of the bare loop.
    """
    work, found = WORKLOADS[workload], {}
    for mode in modes:
        flags = ["--compile"] if mode == "compiled" else []
        other = ("before",) if before else () if workload == "dqn-pong" else ("bare",)  # no bare loop of pixels
        for name in ("rlcore", *other) if number % 2 == 0 else (*other, "rlcore"):
            frames, script = round(share * work.frames), "bare_off_policy" if name == "bare" else "rlcore_off_policy"
            interpreter = before if before and name == "before" else sys.executable
            found[f"{name} {mode}"] = run(interpreter, script, workload, frames, flags, work.threads)
    for name in PEERS[workload] if python else ():
        found[name] = run(
            str(python), f"{name}_off_policy", workload, round(share * work.peer_frames), [], work.threads
        )
    return {name: result for name, result in found.items() if result}


def table(rounds: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    lines = ["| system | frames/s | rlcore, eager / it | rlcore, compiled / it | rounds |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(name for row in rounds for name in row):
        speeds = [row[name]["frames_per_s"] for row in rounds if name in row]
        cells = [name, spread(speeds, "{:,.1f}")]
        for mode in ("eager", "compiled"):
            ours = f"rlcore {mode}"
            both = [row[ours]["frames_per_s"] / row[name]["frames_per_s"] for row in rounds if {ours, name} <= set(row)]
            cells.append(spread(both) if both and ours != name else "")
        lines.append(f"| {' | '.join(cells)} | {len(speeds)} |")
    return "\n".join(lines)


def main() -> None:
    """Run, and write the results after every round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="+", default=["eager", "compiled"], choices=["eager", "compiled"])
    parser.add_argument("--share", type=float, default=1.0, help="of the frames that are timed by default")
    parser.add_argument("--peers-python", help="interpreter of the peers' environment; without it no peer runs")
    parser.add_argument("--before", help="interpreter of another rlcore; rounds of both are run and printed, no more")
    args = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    if args.before:
        for number in range(args.rounds):
            rounds.append(one_round(args.workload, number, args.modes, args.share, None, args.before))
        print(table(rounds))
        return
    name = f"speed-{args.workload}"
    for number in range(args.rounds):
        rounds.append(one_round(args.workload, number, args.modes, args.share, args.peers_python))
        (ROWS / f"{name}.json").write_text(json.dumps(rounds, indent=1) + "\n")
        threads = WORKLOADS[args.workload].threads
        head = f"# Speed, {args.workload}, torch's threads: {threads}\n\n{datetime.date.today()}, {machine()}."
        (RESULTS / f"{name}.md").write_text(f"{head}\n\n{table(rounds)}\n")
    print((RESULTS / f"{name}.md").read_text())


if __name__ == "__main__":
    main()
