"""Train several seeds from a script, with a hook, and print what each reached.

Arguments are overrides: python train_from_python.py run.total_frames=10_000 loss.clip_epsilon=0.3
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rlcore
from rlcore import hookimpl

if TYPE_CHECKING:
    from rlcore import Episode

CONFIG = Path(__file__).with_name("ppo-cartpole.toml")
SEEDS = (1, 2, 3)


class LongestEpisode:
    """Remembers the longest episode of a run."""

    def __init__(self) -> None:
        self.length = 0

    @hookimpl
    def episode_end(self, episode: Episode) -> None:
        """Compare the length of an episode."""
        self.length = max(self.length, episode.length)


def train(seed: int, overrides: Sequence[str]) -> None:
    """Train one seed, and stop it as soon as an evaluation is perfect. Nothing is written."""
    config = rlcore.load_config(CONFIG, ["run.total_frames=100_000", *overrides, f"run.seed={seed}"])
    longest = LongestEpisode()
    trainer = rlcore.build(config, write=False, hooks=[longest]).trainer
    for _ in trainer:
        if trainer.last_evaluation is not None and trainer.last_evaluation.mean_return >= 500:
            trainer.request_stop("solved")
    best = trainer.best_evaluation.mean_return if trainer.best_evaluation else float("nan")
    print(
        f"seed {seed}: {trainer.progress.frames:,} frames, best evaluation {best:.1f}, longest episode {longest.length}"
        + (f" ({trainer.stop_reason})" if trainer.stop_reason else "")
    )


def main(overrides: Sequence[str]) -> None:
    """Train every seed."""
    for seed in SEEDS:
        train(seed, overrides)


if __name__ == "__main__":
    main(sys.argv[1:])
