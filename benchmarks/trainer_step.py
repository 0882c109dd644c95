"""Microseconds per optimisation step of one trainer, with a trivial loss: a line of JSON for `trainer_overhead.py`.

Runs with either library installed: `--system rlcore`, `torchrl` or `bare` (the same step in a plain loop).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import torch
from tensordict import TensorDict

warnings.filterwarnings("ignore")
DESTINATIONS = (
    *("pre_epoch_log", "process_optim_batch", "post_loss", "process_loss", "post_optim", "post_optim_log"),
    *("post_epoch_log", "post_epoch"),
)


class Batches:
    """The same batch again and again, in the way of a collector."""

    init_random_frames = 0

    def __init__(self, count: int) -> None:
        self.batches = [TensorDict({"observation": torch.zeros(64, 4)}, batch_size=[64])] * count

    def __iter__(self) -> Any:
        return iter(self.batches)

    def shutdown(self) -> None:
        """Nothing to release."""

    def set_seed(self, seed: int, static_seed: bool = False) -> int:
        """Nothing to seed."""
        return seed


def losses_of(weight: torch.Tensor) -> Any:
    """Return a loss that costs next to nothing."""
    return lambda batch: TensorDict({"loss": weight.sum()}, batch_size=[])


def trainer_of(system: str, steps: int, batches: int, hooks: int) -> Any:
    """Return a trainer with `hooks` operations that do nothing at each destination of the optimisation loop."""
    if system == "rlcore":
        from rlcore import Trainer
    else:
        from torchrl.trainers import Trainer
    weight = torch.nn.Parameter(torch.zeros(1))
    trainer = Trainer(
        collector=Batches(batches),
        total_frames=64 * batches,
        frame_skip=1,
        optim_steps_per_batch=steps,
        loss_module=losses_of(weight),
        optimizer=torch.optim.Adam([weight], lr=1e-3),
        clip_norm=1.0,
        progress_bar=False,
        log_interval=10**9,
    )
    for destination in DESTINATIONS:
        for _ in range(hooks):
            trainer.register_op(destination, lambda *arguments: None)
    return trainer


def bare(steps: int) -> None:
    """Take the same steps in a plain loop."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([weight], lr=1e-3)
    loss, batch = losses_of(weight), Batches(1).batches[0]
    for _ in range(steps):
        losses = loss(batch)
        losses["loss"].backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main() -> None:
    """Time the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", choices=("rlcore", "torchrl", "bare"), required=True)
    parser.add_argument("--hooks", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.system == "bare":
        bare(100)
        began = time.perf_counter()
        bare(3 * args.steps)
    else:
        trainer_of(args.system, 100, 1, args.hooks).train()
        trainer = trainer_of(args.system, args.steps, 3, args.hooks)
        began = time.perf_counter()
        trainer.train()
    print(json.dumps({"microseconds": (time.perf_counter() - began) / (3 * args.steps) * 1e6}))


if __name__ == "__main__":
    main()
