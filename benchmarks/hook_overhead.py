"""What loop points cost per optimizer step: unused, and with five hooks that do nothing on every inner point.

Times the calls that `GradientLearner.update` makes, and whole updates of a small PPO network in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from bench import RESULTS, machine

from rlcore import build, hookimpl, load_config
from rlcore.hooks.points import Hook, LoopHooks

CONFIG = Path(__file__).resolve().parents[1] / "examples" / "ppo-cartpole.toml"


class Nothing:
    """Implements every inner point that several hooks can, with all of its arguments, and does nothing."""

    @hookimpl
    def process_optim_batch(self, minibatch: Any, learner: Any) -> None:
        """Leave it as it is."""

    @hookimpl
    def post_loss(self, losses: Any, minibatch: Any, learner: Any) -> None:
        """Leave it as it is."""

    @hookimpl
    def post_optim(self, minibatch: Any, learner: Any) -> None:
        """Do nothing."""

    @hookimpl
    def post_optim_log(self, metrics: Any, minibatch: Any, learner: Any) -> None:
        """Return nothing."""


def microseconds(call: Callable[[], Any], repeats: int) -> float:
    """Return microseconds per call."""
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - began) / repeats * 1e6


def points(hooks: LoopHooks) -> Callable[[], None]:
    """Return what calls the inner points once, as an update does."""
    losses: dict[str, Any] = {}

    def call() -> None:
        hooks.process_optim_batch(losses, None)  # type: ignore[arg-type]
        hooks.post_loss(losses, losses, None)  # type: ignore[arg-type]
        hooks.post_optim(losses, None)  # type: ignore[arg-type]
        hooks.post_optim_log(losses, losses, None)  # type: ignore[arg-type]

    return call


def whole_update(hooks: list[Any]) -> Callable[[], Any]:
    """Return an update of the CartPole network with these hooks."""
    trainer = build(load_config(CONFIG, ["run.total_frames=1024"]), write=False, hooks=hooks).trainer
    batch = trainer.collector.collect()
    assert trainer.estimator is not None
    trainer.estimator(batch)
    minibatch = next(iter(trainer.buffer.minibatches(batch)))
    return lambda: trainer.learner.update(minibatch)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    unused, five = points(LoopHooks()), points(LoopHooks([Hook(str(n), Nothing()) for n in range(5)]))
    empty: Callable[[], None] = lambda: None  # noqa: E731
    bare, hooked = whole_update([]), whole_update([Nothing() for _ in range(5)])
    rows = []
    for _ in range(args.rounds):
        rows.append(
            {
                "empty call": microseconds(empty, 20_000),
                "four unused points": microseconds(unused, 20_000),
                "five hooks on four points": microseconds(five, 20_000),
                "update, no hooks": microseconds(bare, 100),
                "update, five hooks on each point": microseconds(hooked, 100),
            }
        )
    result = {name: round(statistics.median(row[name] for row in rows), 3) for name in rows[0]}
    result["one unused point"] = round((result["four unused points"] - result["empty call"]) / 4, 3)
    lines = [f"| {name} | {value:,.2f} |" for name, value in result.items()]
    head = "| what is called | microseconds |\n|---|---|\n"
    text = f"# Hooks, per optimizer step\n\n{machine()}. Median of {args.rounds}.\n\n{head}" + "\n".join(lines) + "\n"
    (RESULTS / "hook-overhead.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
