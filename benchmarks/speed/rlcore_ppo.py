"""Speed of rlcore as a user runs it: from a config, with CSV and TensorBoard loggers, checkpoints and progress bar on.

Only evaluation is off. Hooks, counting, metrics, logging and saving all fall into the timed iterations.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from common import WORKLOADS, Phases, Workload, clock, peer_parser, prepare, report, whole_batches
from rlcore_config import config_for

from rlcore import build, hookimpl


class Clock:
    """A hook that notes where collection ends, and what the episodes returned."""

    def __init__(self) -> None:
        self.collected = 0.0
        self.returns: list[float] = []

    @hookimpl
    def batch_process(self) -> None:
        """Note the time: the batch was collected just now."""
        self.collected = clock()

    @hookimpl
    def episode_end(self, episode: Any) -> None:
        """Note the return."""
        self.returns.append(episode.return_)


def timed(peer: str, args: argparse.Namespace, workload: Workload, config_in: Callable[[str], Any]) -> None:
    """Train and print the JSON line; the config is that of a run in the folder that `config_in` gets."""
    phases, hook = Phases(workload.batch, counts_steps=False), Clock()
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        terminal, sys.stderr = sys.stderr, nowhere
        trainer = build(config_in(folder), hooks=[hook]).trainer
        began, updates = clock(), 0
        for progress in trainer:
            now = clock()
            phases._pending = progress.updates - updates  # the learner calls no optimizer that could be counted
            updates = progress.updates
            phases.add(hook.collected - began, now - hook.collected)
            began = clock()
        sys.stderr = terminal
    report(peer, args, phases, hook.returns)


def main() -> None:
    """Train and print the JSON line."""
    parser = peer_parser(__doc__)
    parser.add_argument("--compile", action="store_true", help="[learner] compile = true")
    args = parser.parse_args()
    prepare(args)
    workload = WORKLOADS[args.workload]
    frames = whole_batches(workload, args.frames)
    name = "rlcore, compiled" if args.compile else "rlcore"
    timed(name, args, workload, lambda folder: config_for(args.workload, frames, args.seed, args.compile, folder))


if __name__ == "__main__":
    main()
