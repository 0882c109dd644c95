"""What `Trainer` costs when a script builds it: beside the same run from a config, and per step beside TorchRL's.

The speed of `rlcore_script.py` and `rlcore_ppo.py` on the work `idp` is taken in alternating pairs, the microseconds of
`trainer_step.py` in rounds; each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench import RESULTS, machine, run, spread

STEP = str(Path(__file__).with_name("trainer_step.py"))


def by_hand_to_config(pairs: int, frames: int) -> list[float]:
    """Return the ratio of frames per second, by hand to config, of each pair."""
    ratios = []
    for number in range(pairs):
        order = ["rlcore_script", "rlcore_ppo"] if number % 2 == 0 else ["rlcore_ppo", "rlcore_script"]
        found = {script: run(sys.executable, script, "idp", frames, []) for script in order}
        if found["rlcore_script"] and found["rlcore_ppo"]:
            ratios.append(found["rlcore_script"]["frames_per_s"] / found["rlcore_ppo"]["frames_per_s"])
    return ratios


def microseconds(python: str, system: str, hooks: int) -> float:
    """Return what one optimisation step of a system takes."""
    command = [python, STEP, "--system", system, "--hooks", str(hooks)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(json.loads(done.stdout.strip().splitlines()[-1])["microseconds"])


def steps(rounds: int, peers: str) -> list[str]:
    """Return the rows of the table of steps."""
    cells: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for python, system in ((sys.executable, "bare"), (sys.executable, "rlcore"), (peers, "torchrl")):
            for hooks in (0,) if system == "bare" else (0, 5):
                cells.setdefault((system, hooks), []).append(microseconds(python, system, hooks))
    bare = cells["bare", 0]
    lines = ["| system | operations at each destination | microseconds per step | more than the bare loop |"]
    lines.append("|---|---|---|---|")
    for (system, hooks), values in cells.items():
        more = statistics.median(value - base for value, base in zip(values, bare, strict=True))
        lines.append(f"| {system} | {hooks} | {spread(values, '{:.0f}')} | {more:+.0f} |")
    return lines


def main() -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--frames", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers-python", required=True, help="interpreter of the peers' environment")
    args = parser.parse_args()
    ratios = by_hand_to_config(args.pairs, args.frames)
    table = "\n".join(steps(args.rounds, args.peers_python))
    text = (
        f"# Trainer by hand\n\n{machine()}, one thread.\n\n"
        f"Frames per second on `idp`, by hand to config, {len(ratios)} alternating pairs: "
        f"{spread(ratios, '{:.3f}')}.\n\n"
        f"One optimisation step with a loss of one parameter, Adam and clipping of the norm, median of {args.rounds} "
        f"(the bare loop takes the same step):\n\n{table}\n"
    )
    (RESULTS / "trainer-overhead.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
