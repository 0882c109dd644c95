"""Frames per second of MBPO beside mbrl-lib, on CartPole with continuous forces, at the settings of mbrl-lib's config.

    python benchmarks/mbpo.py --mbrl-python .venv-model/bin/python

Twenty updates per frame, seven members of four layers of 200, one thread; frames after an exploration of 600. Processes
take turns, and a ratio is that of two processes of one round. Writes results/speed-mbpo.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

from bench import RESULTS, machine, spread
from offline import last_line

SPEED = Path(__file__).with_name("speed")


def frames_per_s(python: str, script: str, frames: int, *flags: str) -> float:
    """Return what a process of its own measures."""
    lengths = ["--exploration", "600", "--frames", str(frames)]
    return float(last_line([python, str(SPEED / script), *lengths, *flags])["frames_per_s"])


def main() -> None:
    """Measure in turn, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=400)
    parser.add_argument("--mbrl-python", required=True, help="interpreter of an environment with mbrl-lib")
    options = parser.parse_args()
    sides = {
        "rlcore, eager": (sys.executable, "rlcore_mbpo.py"),
        "rlcore, compiled": (sys.executable, "rlcore_mbpo.py", "--compile"),
        "mbrl-lib": (options.mbrl_python, "mbrl_mbpo.py"),
    }
    load = os.getloadavg()[0]
    rounds = []
    for number in range(options.rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        found = {}
        for name in order:
            python, script, *flags = sides[name]
            found[name] = frames_per_s(python, script, options.frames, *flags)
            print(f"{name}: {found[name]:.2f} frames/s", flush=True)
        rounds.append(found)
    lines = ["| system | frames/s | beside mbrl-lib |", "|---|---|---|"]
    for name in sides:
        ratios = [found[name] / found["mbrl-lib"] for found in rounds]
        lines.append(f"| {name} | {statistics.median(found[name] for found in rounds):.2f} | {spread(ratios)} |")
    head = f"# Speed of MBPO, torch's threads: 1\n\n{machine()}, {options.rounds} rounds, load {load:.1f} before."
    text = "\n".join([head, "", *lines])
    (RESULTS / "speed-mbpo.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
