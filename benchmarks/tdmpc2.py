"""Updates and planned steps per second of TD-MPC2 beside the authors' own code, at the paper's sizes, on one thread.

    git clone https://github.com/nicklashansen/tdmpc2
    python benchmarks/tdmpc2.py --source tdmpc2/tdmpc2

Processes take turns, and a ratio is that of two processes of one round; seconds are those of the processor, to which
other programs matter less. Writes results/speed-tdmpc2.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from bench import RESULTS, machine, spread
from offline import last_line

SPEED = Path(__file__).with_name("speed")
WHAT = {"updates_per_s": "updates/s", "steps_per_s": "planned steps/s"}


def table(rounds: list[dict[str, Any]], sides: list[str], base: str) -> list[str]:
    """Return lines of Markdown: what each side does in a second, and how often as much as the base."""
    lines = ["| system | " + " | ".join(f"{title} | beside {base}" for title in WHAT.values()) + " |"]
    lines.append("|---" * (1 + 2 * len(WHAT)) + "|")
    for name in sides:
        cells = [name]
        for key in WHAT:
            cells.append(f"{statistics.median(found[name][key] for found in rounds):.2f}")
            cells.append(spread([found[name][key] / found[base][key] for found in rounds]))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Measure in turn, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="the folder tdmpc2 of a checkout of the authors' code")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--no-compile", action="store_true", help="compare the eager sides alone")
    options = parser.parse_args()
    counts = ["--updates", str(options.updates), "--plans", str(options.plans)]
    sides: dict[str, list[str]] = {
        "rlcore, eager": ["rlcore_tdmpc2.py"],
        "authors, eager": ["official_tdmpc2.py", "--source", options.source],
    }
    if not options.no_compile:
        sides |= {f"{name.split(',')[0]}, compiled": [*side, "--compile"] for name, side in list(sides.items())}
    load = os.getloadavg()[0]
    rounds = []
    for number in range(options.rounds):
        found = {}
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            script, *flags = sides[name]
            found[name] = last_line([sys.executable, str(SPEED / script), *flags, *counts])
            print(name, found[name], flush=True)
        rounds.append(found)
    head = f"# Speed of TD-MPC2, torch's threads: 1\n\n{machine()}, {options.rounds} rounds, load {load:.1f} before."
    text = "\n".join([head, "", *table(rounds, list(sides), "authors, eager")])
    (RESULTS / "speed-tdmpc2.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
