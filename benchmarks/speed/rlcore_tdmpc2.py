"""Seconds of the processor of an update and a planned step of rlcore's TD-MPC2, at the paper's sizes; one JSON line.

Observations and actions are those of Pendulum. The same minibatch is trained on again and again, as by the other side;
the noise of the losses counts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from rlcore import build, load_config

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tdmpc2-pendulum.toml"
PAPER = [
    "model.latent_size=512",
    "model.encoder_hidden=[256]",
    "model.hidden=[512, 512]",
    "model.samples=512",
    "model.prior_samples=24",
    "model.elites=64",
    "model.random_frames=400",
    "buffer.minibatch_size=256",
    "buffer.warmup_frames=100_000",
    "run.total_frames=100_000",
    "evaluator.at_start=false",
]


def main() -> None:
    """Measure and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    compiled = f"learner.compile={'true' if args.compile else 'false'}"
    trainer = build(load_config(EXAMPLE, [*PAPER, compiled]), write=False).trainer
    for progress in trainer:
        if progress.frames >= 300:
            break
    buffer, learner, policy = trainer.buffer, trainer.learner, trainer.model.policy
    minibatch = buffer.sample()
    learner.update(minibatch)  # the first one compiles
    began = time.process_time()
    for _ in range(args.updates):
        learner.update(minibatch)
    update_s = (time.process_time() - began) / args.updates
    policy._begins = False  # plan from here on
    generator, observation, first = torch.Generator(), torch.zeros(1, 3), torch.zeros(1, dtype=torch.bool)
    with torch.inference_mode():
        state = policy.initial_state(1)
        began = 0.0
        for number in range(args.plans + 1):
            if number == 1:
                began = time.process_time()
            _, _, state = policy.act(observation, policy.draw(1, 1, generator)[0], state, first)
    plan_s = (time.process_time() - began) / args.plans
    print(json.dumps({"side": "rlcore", "updates_per_s": 1 / update_s, "steps_per_s": 1 / plan_s}))


if __name__ == "__main__":
    main()
