"""Updates per second of d3rlpy's IQL, CQL and TD3+BC, by its `fit`, on made-up transitions; one JSON line."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import d3rlpy
import numpy as np
import torch
from d3rlpy.algos import CQLConfig, IQLConfig, TD3PlusBCConfig
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy.models import VectorEncoderFactory

WIDE = VectorEncoderFactory([256, 256])
NETWORKS = {"actor_encoder_factory": WIDE, "critic_encoder_factory": WIDE}
BOTH = {**NETWORKS, "actor_learning_rate": 3e-4, "critic_learning_rate": 3e-4, "batch_size": 256}
EPISODE = 1_000


def algorithm_of(name: str) -> Any:
    """Return the algorithm; CQL without its multiplier, as the others are measured."""
    if name == "iql":
        config: Any = IQLConfig(**BOTH, value_encoder_factory=WIDE)
    elif name == "cql":
        config = CQLConfig(**BOTH, temp_learning_rate=3e-4, alpha_learning_rate=0.0, n_action_samples=10)
    else:
        config = TD3PlusBCConfig(**BOTH)
    return config.create(device="cpu:0")


def dataset_of(observed: int, actions: int, steps: int) -> Any:
    """Return so many steps in episodes of one length."""
    draw = np.random.default_rng(0)
    ends = np.arange(steps) % EPISODE == EPISODE - 1
    return d3rlpy.dataset.MDPDataset(
        draw.standard_normal((steps, observed), dtype=np.float32),
        draw.uniform(-0.9, 0.9, (steps, actions)).astype(np.float32),
        draw.standard_normal((steps, 1)).astype(np.float32),
        terminals=np.zeros(steps, np.float32),
        timeouts=ends.astype(np.float32),
    )


def main() -> None:
    """Time the updates after the first ones and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=["iql", "cql", "td3-bc"])
    parser.add_argument("--sizes", type=int, nargs=2, metavar=("OBSERVED", "ACTIONS"), required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    times: dict[int, float] = {}
    algorithm_of(args.algorithm).fit(
        dataset_of(*args.sizes, steps=100_000),
        n_steps=args.warm + args.updates,
        n_steps_per_epoch=args.warm + args.updates,
        logger_adapter=NoopAdapterFactory(),
        show_progress=False,
        callback=lambda algorithm, epoch, step: times.setdefault(step, time.perf_counter()),
    )
    seconds = times[args.warm + args.updates] - times[args.warm]
    print(json.dumps({"peer": "d3rlpy", "updates_per_s": args.updates / seconds}))


if __name__ == "__main__":
    main()
