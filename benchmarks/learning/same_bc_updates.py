"""Whether updates of behaviour cloning are those of d3rlpy: same weights, same minibatches, compared at the end.

A run of the task `bc-halfcheetah-medium-expert` writes down its first weights, each minibatch, and the weights that its
updates left. d3rlpy's own `inner_update` begins from the same weights and takes the same minibatches. The line says how
far the two ended apart, as a fraction of how far they moved.

    python benchmarks/learning/make_data.py halfcheetah
    python benchmarks/learning/same_bc_updates.py --peers-python DIR/bin/python  # of an environment with d3rlpy
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from learn import ROOT, TASKS
from torch import Tensor
from written_updates import Pair, begin_alike, hand_over, pairs_of_network, print_apart, train_noted

TASK = "bc-halfcheetah-medium-expert"
HERE = Path(__file__).resolve().parent


def train_here(updates: int, changes: list[str]) -> dict[str, Any]:
    """Return the weights before and after so many updates of a run, and their minibatches."""
    from rlcore import build, load_config

    config, settings = TASKS[TASK]
    length = [f"run.total_updates={updates}", "evaluator.every=1_000_000", "evaluator.at_start=false"]
    return train_noted(build(load_config(ROOT / config, [*settings, *length, *changes]), write=False).trainer)


def pairs(weights: dict[str, Tensor], imitator: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    yield from pairs_of_network("actor", weights, "actor.network", imitator)


def train_peer(written: dict[str, Any]) -> None:
    """Take the same updates with d3rlpy, and print how the two compare."""
    from d3rlpy.torch_utility import TorchMiniBatch

    sys.path.insert(0, str(HERE.parent / "speed"))
    from d3rlpy_algorithms import algorithm_of

    first = written["minibatches"][0]
    algorithm = algorithm_of("bc")
    algorithm.create_impl(first["observation"].shape[1:], first["action"].shape[1])
    both = partial(pairs, imitator=algorithm.impl.modules.imitator)
    begin_alike(written, both)
    for step, entries in enumerate(written["minibatches"]):
        unread = torch.zeros(len(entries["action"]), 1)  # cloning reads observations and actions alone
        batch = TorchMiniBatch(
            observations=entries["observation"],
            actions=entries["action"],
            rewards=unread,
            next_observations=entries["observation"],
            next_actions=entries["action"],
            returns_to_go=unread,
            terminals=unread,
            intervals=unread,
            device="cpu:0",
        )
        algorithm.impl.inner_update(batch, step)
    print_apart("bc", written, both)


def main() -> None:
    """Train here, and compare in the interpreter of d3rlpy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="override a config key")
    parser.add_argument("--peers-python", help="interpreter of an environment with d3rlpy")
    parser.add_argument("--written", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.written:
        train_peer(torch.load(args.written, weights_only=True))
        return
    hand_over(train_here(args.updates, args.set), args.peers_python)


if __name__ == "__main__":
    main()
