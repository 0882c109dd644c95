"""Speed of rlcore as a script uses it: parts from a factory, `Trainer` by hand, the same work as `rlcore_ppo.py`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from common import WORKLOADS, Phases, clock, peer_parser, prepare, report, whole_batches
from rlcore_ppo import Clock

from rlcore import Factory


def main() -> None:
    """Train on the work `idp` and print the JSON line."""
    args = peer_parser(__doc__).parse_args()
    prepare(args)
    workload = WORKLOADS["idp"]
    frames = whole_batches(workload, args.frames)
    phases, hook = Phases(workload.batch, counts_steps=False), Clock()
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        terminal, sys.stderr = sys.stderr, nowhere
        make = Factory(total_frames=frames, seed=args.seed, folder=folder)
        make.env("gymnasium", id="InvertedDoublePendulum-v5")
        make.transform("gymnasium:observation-norm", frames=1000)
        make.model("mlp", hidden=[256, 256, 256], activation="tanh")
        make.estimator("ppo:gae", gamma=0.99, lmbda=0.95, every="epoch", standardise=True)
        make.loss("ppo", clip_epsilon=0.2, entropy_coef=1e-4, critic_coef=1.0, critic_loss="smooth_l1")
        make.collector(frames_per_batch=1000)
        make.buffer(epochs=10, minibatch_size=64)
        trainer = make.trainer(
            optimizer=make.optimizer("adam", lr=3e-4),
            clip_norm=1.0,
            logger=[make.logger("csv"), make.logger("tensorboard")],
            log_interval=1000,
            save_trainer_file=Path(folder) / "checkpoints",
            save_trainer_interval=10_000,
            hooks=[hook],
        )
        began, updates = clock(), 0
        for progress in trainer:
            now = clock()
            phases._pending = progress.updates - updates  # the trainer calls no optimizer that could be counted
            updates = progress.updates
            phases.add(hook.collected - began, now - hook.collected)
            began = clock()
        sys.stderr = terminal
    report("rlcore, by hand", args, phases, hook.returns)


if __name__ == "__main__":
    main()
