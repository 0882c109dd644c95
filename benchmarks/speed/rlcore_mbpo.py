"""MBPO of rlcore on CartPole with continuous forces, at the settings of mbrl-lib; one JSON line.

The seconds are of the frames after the exploration, training of dynamics and rollouts included; the first update, in
which a compiled one is compiled, falls into the exploration's last frames.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from rlcore import build, load_config

LEARNING = Path(__file__).resolve().parents[1] / "learning"


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exploration", type=int, default=1_000)
    parser.add_argument("--frames", type=int, default=4_000, help="after the exploration")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(LEARNING))  # where the env lies
    changes = [
        f"run.seed={args.seed}",
        f"run.total_frames={args.exploration + args.frames}",
        f"model.random_frames={args.exploration}",
        f"buffer.warmup_frames={args.exploration}",
        f"learner.compile={'true' if args.compile else 'false'}",
    ]
    trainer = build(load_config(LEARNING / "mbpo-cartpole.toml", changes), write=False).trainer
    began, first = 0.0, 0
    for progress in trainer:
        if progress.updates and not began:
            began, first = time.perf_counter(), progress.frames
    seconds = time.perf_counter() - began
    print(json.dumps({"peer": "rlcore", "seed": args.seed, "frames_per_s": (progress.frames - first) / seconds}))


if __name__ == "__main__":
    main()
