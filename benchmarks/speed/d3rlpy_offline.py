"""Updates per second of d3rlpy's IQL, CQL and TD3+BC, by its `fit`, on made-up transitions; one JSON line."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import d3rlpy
import numpy as np
import torch
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy_algorithms import algorithm_of

EPISODE = 1_000


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
