"""What one iteration of the loop costs above env and policy, where batches are small: prints a table.

Each size of batch is run without updates and with one update of 128 per iteration, with CleanRL's settings of DQN on
CartPole. Env and policy alone are timed in the same process, right after each iteration, so that both see the same
machine; a figure is the 20th percentile, which other work on the machine moves least.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from rlcore import load_config
from rlcore.run.build import build

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "dqn-cartpole.toml"
CLEANRL = (
    "model.hidden=[120, 84]",
    "model.epsilon_start=0.05",
    "model.epsilon_end=0.05",
    "loss.double=false",
    "buffer.capacity=10_000",
    "buffer.minibatch_size=128",
    "buffer.updates_per_batch=1",
    "hook=[]",
)
BEFORE = 200  # iterations that are not timed


def trainer_of(frames: int, iterations: int, updates: bool, compiled: bool) -> Any:
    """Return a trainer that is ready, and writes nothing."""
    total = frames * (iterations + BEFORE)
    changes = [
        *CLEANRL,
        f"run.total_frames={total}",
        f"collector.frames_per_batch={frames}",
        f"buffer.warmup_frames={0 if updates else 10 * total}",
        f"learner.compile={'true' if compiled else 'false'}",
        f"evaluator.every={10 * total}",
        "evaluator.at_start=false",
        "evaluator.episodes=1",
    ]
    return build(load_config(EXAMPLE, changes), write=False).trainer


def bare_of(frames: int) -> Any:
    """Return a function that steps an env of its own with a policy of its own, as a loop without rlcore would."""
    other = trainer_of(frames, 1, updates=False, compiled=False)
    env, policy = other.parts.collector._env, other.model.policy
    generator = torch.Generator().manual_seed(1)
    seen = torch.from_numpy(env.reset(seed=1))

    def steps() -> None:
        noise = policy.draw(frames, 1, generator)
        with torch.inference_mode():
            for row in noise:
                action, _ = policy.act(seen, row)
                seen.copy_(torch.from_numpy(env.step(action.numpy()).observation))

    return steps


def microseconds(frames: int, iterations: int, updates: bool, compiled: bool) -> tuple[float, float]:
    """Return what an iteration costs, and what env and policy alone cost."""
    trainer, bare = trainer_of(frames, iterations, updates, compiled), bare_of(frames)
    whole, alone = [], []
    began = perf_counter()
    for _ in trainer:
        whole.append(perf_counter() - began)
        began = perf_counter()
        bare()
        alone.append(perf_counter() - began)
        began = perf_counter()
    found = [float(np.percentile(times[BEFORE:], 20)) * 1e6 for times in (whole, alone)]
    return found[0], found[1]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=1500, help="that are timed, of each kind")
    parser.add_argument("--frames", type=int, nargs="+", default=[1, 10, 100], help="of an iteration")
    parser.add_argument("--compile", action="store_true", help="compile the update")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    print(
        "| frames | updates | iteration, us | env and policy, us | above them, us |\n|---|---|---|---|---|", flush=True
    )
    for frames in args.frames:
        for updates in (False, True):
            whole, alone = microseconds(frames, args.iterations, updates, args.compile)
            row = (frames, int(updates), f"{whole:.0f}", f"{alone:.0f}", f"{whole - alone:.0f}")
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
