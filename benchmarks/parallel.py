"""What two threads gain for an update: the same run with and without `[learner] parallel`, iterations in turn.

Both runs are in one process and compute the same numbers, which is checked; medians over the iterations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from bench import RESULTS, machine

import rlcore

EXAMPLE = Path(__file__).parents[1] / "examples" / "ppo-idp.toml"
QUIET = ("evaluator.every=1000000000", "checkpoint.every=1000000000", "metrics.every=1000000000")


class Timed:
    """A run whose iterations and updates are timed.

    Args:
        parallel: of the learner.
        overrides: of the config.
        folder: of the run.
    """

    def __init__(self, parallel: bool, overrides: list[str], folder: str) -> None:
        setting = f"learner.parallel={str(parallel).lower()}"
        config = rlcore.load_config(EXAMPLE, [*QUIET, *overrides, setting, f"run.folder={folder}/{parallel}"])
        self.trainer = rlcore.build(config, write=False).trainer
        self.updates: list[float] = []
        self.iterations: list[float] = []
        self._iterator = iter(self.trainer)
        learner: Any = self.trainer.parts.learner
        inner = learner.take_step

        def take_step(minibatch: Mapping[Any, torch.Tensor]) -> Any:
            began = time.perf_counter()
            metrics = inner(minibatch)
            self.updates.append(time.perf_counter() - began)
            return metrics

        learner.take_step = take_step

    def iterate(self) -> None:
        """Take one iteration."""
        began = time.perf_counter()
        next(self._iterator)
        self.iterations.append(time.perf_counter() - began)


def measure(overrides: list[str], iterations: int, warm: int) -> str:
    """Return the row of the table for a config."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {parallel: Timed(parallel, overrides, folder) for parallel in (False, True)}
        for number in range(warm + iterations):
            if number == warm:
                for run in runs.values():
                    run.updates.clear()
                    run.iterations.clear()
            for parallel in (False, True) if number % 2 else (True, False):
                runs[parallel].iterate()
    weights = [run.trainer.model.state_dict().values() for run in runs.values()]
    if not all(torch.equal(one, other) for one, other in zip(*weights, strict=True)):
        raise SystemExit("the runs differ")
    update = {parallel: statistics.median(run.updates) for parallel, run in runs.items()}
    whole = {parallel: statistics.median(run.iterations) for parallel, run in runs.items()}
    return (
        f"| {' '.join(overrides) or 'as it is'} | {update[False] * 1e3:.2f} | {update[True] * 1e3:.2f} | "
        f"{update[False] / update[True]:.2f} | {whole[False] * 1e3:.0f} | {whole[True] * 1e3:.0f} | "
        f"{whole[False] / whole[True]:.2f} |"
    )


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="one row more, with these overrides, by spaces")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [measure(overrides.split(), args.iterations, args.warm) for overrides in ["", *args.set]]
    text = "\n".join(
        [
            "# Losses side by side on two threads",
            "",
            f"{machine()}. `examples/ppo-idp.toml`, one thread of torch on each side; an iteration is 1,000",
            f"frames and 160 updates of 64. Medians over {args.iterations} iterations of each way, in turn in one",
            "process; both have the same weights, bit for bit, at the end. Other work on the machine: load",
            f"{load:.1f} before it began.",
            "",
            "| settings | update, ms: one thread | two | ratio | iteration, ms: one thread | two | ratio |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
    print(text)
    (RESULTS / "parallel.md").write_text(text)


if __name__ == "__main__":
    main()
