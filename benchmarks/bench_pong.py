"""Runs the speed comparison on Pong in rounds: PPO of rlcore and the peers, and collection with random actions.

    python benchmarks/bench_pong.py --rounds 3 --peers-python .venv-peers/bin/python

All run with two threads. A frame is a step of four frames of the emulator. A ratio is that of two processes of one
round; every round has the other order than the one before. The peers' environment needs ale-py and
opencv-python-headless.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from typing import Any

from bench import RESULTS, ROWS, machine, run, spread

THREADS = 2
# name: script and flags; of the first group each is set against the first one
OURS = {
    "rlcore": ("rlcore_pong", []),
    "rlcore, compiled": ("rlcore_pong", ["--compile"]),
    "rlcore, native": ("rlcore_pong", ["--native"]),
}
PEERS = {name: (f"{name}_pong", []) for name in ("sb3", "cleanrl", "torchrl")}
COLLECTION = {name: ("collect_pong", ["--system", name]) for name in ("native", "serial", "ale")}


def one_round(number: int, frames: int, python: str | None) -> dict[str, Any]:
    """Return the results of one round by name."""
    pythons = dict.fromkeys([*OURS, *COLLECTION], sys.executable) | dict.fromkeys(PEERS if python else (), str(python))
    scripts = OURS | COLLECTION | PEERS
    names = list(pythons) if number % 2 == 0 else list(reversed(pythons))
    found = {}
    for name in names:
        script, flags = scripts[name]
        work = 2 * frames if name in COLLECTION else frames
        found[name] = run(pythons[name], script, "pong", work, [*flags, "--threads", str(THREADS)], THREADS)
    return {name: result for name, result in found.items() if result}


def table(rounds: list[dict[str, Any]], names: list[str], beside: list[str]) -> list[str]:
    """Return lines of Markdown: the speed of each, and how many times as fast each of `beside` is."""
    lines = [f"| system | frames/s | {' | '.join(f'{name} / it' for name in beside)} | rounds |"]
    lines.append(f"|{'---|' * (len(beside) + 3)}")
    for name in names:
        rows = [row for row in rounds if name in row]
        cells = [name, spread([row[name]["frames_per_s"] for row in rows], "{:,.0f}")] if rows else []
        for ours in beside if rows else ():
            both = [row[ours]["frames_per_s"] / row[name]["frames_per_s"] for row in rows if ours in row]
            cells.append(spread(both) if both and ours != name else "")
        lines += [f"| {' | '.join(cells)} | {len(rows)} |"] if rows else []
    return lines


def main() -> None:
    """Run, and write the results after every round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=6_144, help="of each PPO, two batches of warm-up included")
    parser.add_argument("--peers-python", help="interpreter of the peers' environment; without it no peer runs")
    args = parser.parse_args()
    rounds, name = [], "speed-pong"
    for number in range(args.rounds):
        rounds.append(one_round(number, args.frames, args.peers_python))
        (ROWS / f"{name}.json").write_text(json.dumps(rounds, indent=1) + "\n")
        lines = [f"# Speed, Pong, 8 games, torch's threads: {THREADS}", "", f"{datetime.date.today()}, {machine()}."]
        lines += ["", "PPO:", "", *table(rounds, [*OURS, *PEERS], list(OURS))]
        lines += ["", "Collection with random actions:", "", *table(rounds, list(COLLECTION), ["native", "serial"])]
        (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
    print((RESULTS / f"{name}.md").read_text())


if __name__ == "__main__":
    main()
