"""What saving costs a run: checkpoints at the default interval against none, in alternating pairs of whole runs.

The run without checkpoints saves nothing at all: no beginning, no end, no boundary in memory.

    python benchmarks/checkpoint_interval.py --pairs 10
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench import HERE, RESULTS, machine

FRAMES = {"idp": 50_000, "cartpole": 500_000}  # those of the examples


def train(workload: str, saving: bool) -> float:
    """Train in this process and return frames per second of the whole of `train()`."""
    sys.path.insert(0, str(HERE / "speed"))
    import torch
    from rlcore_config import config_for

    from rlcore import build

    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        config = config_for(workload, FRAMES[workload], 1, False, folder)
        config.checkpoint.every = None  # the default: a tenth of the run
        sys.stderr = nowhere
        trainer = build(config).trainer
        if not saving:
            trainer.saving.saver = None
        torch.set_num_threads(1)
        began = time.perf_counter()
        trainer.train()
        return FRAMES[workload] / (time.perf_counter() - began)


def measured(workload: str, saving: bool) -> float:
    """Do that in a process of its own."""
    command = [sys.executable, __file__, "--one", workload, *(["--saving"] if saving else [])]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--workloads", nargs="+", default=list(FRAMES), choices=list(FRAMES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--saving", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(train(args.one, args.saving)))
        return
    lines = ["| work | with, frames/s | without, frames/s | ratio of pairs | pairs |", "|---|---|---|---|---|"]
    for workload in args.workloads:
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(args.pairs):
            for saving in (True, False) if number % 2 == 0 else (False, True):
                speeds[saving].append(measured(workload, saving))
        ratios = [a / b for a, b in zip(speeds[True], speeds[False], strict=True)]
        cells = [f"{statistics.median(speeds[saving]):,.0f}" for saving in (True, False)]
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        lines.append(f"| {workload}, {FRAMES[workload]:,} frames | {' | '.join(cells)} | {spread} | {args.pairs} |")
        print(lines[-1], flush=True)
    text = f"# Checkpoints at the default interval against none\n\n{machine()}.\n\n" + "\n".join(lines) + "\n"
    (RESULTS / "checkpoint-interval.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
