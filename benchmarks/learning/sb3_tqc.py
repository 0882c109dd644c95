"""What TQC of sb3-contrib learns on Pendulum, with the settings of examples/tqc-pendulum.toml.

One JSON line gives the mean return of 100 deterministic episodes on fixed seeds, the seconds that training took, and
the curve of ten evaluations.
"""

from __future__ import annotations

import argparse
import json
import time

import gymnasium
import torch
from sb3_contrib import TQC
from sb3_curve import CurveCallback
from sb3_tasks import evaluate

FRAMES, EPISODES = 10_000, 100
SETTINGS = {"learning_rate": 1e-3, "gamma": 0.99, "buffer_size": FRAMES, "learning_starts": 1_000, "batch_size": 256}


def main() -> None:
    """Train, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    torch.set_num_threads(1)
    evaluated = gymnasium.make("Pendulum-v1")
    record = CurveCallback(FRAMES, 10, lambda model: evaluate(model, evaluated, 10))
    model = TQC("MlpPolicy", "Pendulum-v1", device="cpu", seed=seed, **SETTINGS)
    started = time.perf_counter()
    model.learn(total_timesteps=FRAMES, callback=record)
    seconds = time.perf_counter() - started - record.seconds_evaluating
    found = {"peer": "sb3-contrib", "task": "tqc-pendulum", "seed": seed, "mean": evaluate(model, evaluated, EPISODES)}
    print(json.dumps(found | {"train_s": round(seconds, 1), "frames": FRAMES, "curve": record.curve()}))


if __name__ == "__main__":
    main()
