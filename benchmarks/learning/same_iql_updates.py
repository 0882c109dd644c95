"""Whether IQL's updates are those of d3rlpy: same weights, same minibatches, compared at the end.

A run of `iql-in-turn.toml` writes down its first weights, each minibatch, and the weights that its updates left.
d3rlpy's own `inner_update` begins from the same weights and takes the same minibatches. One line for each part says how
far the two ended apart, as a fraction of how far they moved. Critics and value are to be apart by rounding alone. The
actors are a percent apart, since d3rlpy learns the spread of actions through a sigmoid; with `--equal-weights` the
actor weighs actions by the value before its step, and they end 0.12 apart.

    python benchmarks/learning/make_data.py idp
    python benchmarks/learning/same_iql_updates.py --peers-python DIR/bin/python  # of an environment with d3rlpy
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from written_updates import (
    KEYS,
    Pair,
    begin_alike,
    compare,
    pairs_of_critics,
    pairs_of_network,
    print_apart,
    train_noted,
)

HERE = Path(__file__).resolve().parent
# with which d3rlpy begins; the spread has no influence on critics and value
LOG_STD = -1.5


def train_here(updates: int, in_turn: bool) -> dict[str, Any]:
    """Return the weights before and after so many updates of a run, and their minibatches."""
    from rlcore import build, load_config

    changes = (f"run.total_updates={updates}", f"loss.in_turn={str(in_turn).lower()}", "evaluator.every=1_000_000")
    trainer = build(load_config(HERE / "iql-in-turn.toml", changes), write=False).trainer
    with torch.no_grad():
        trainer.model.get_submodule("spread").log_std.fill_(LOG_STD)
    return train_noted(trainer)


def pairs(weights: dict[str, Tensor], modules: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    yield from pairs_of_network("actor", weights, "actor.network", modules.policy)
    yield from pairs_of_network("value", weights, "value", modules.value_func)
    yield from pairs_of_critics("critics", weights, modules.q_funcs)
    yield from pairs_of_critics("target_critics", weights, modules.targ_q_funcs)


def train_peer(written: dict[str, Any]) -> None:
    """Take the same updates with d3rlpy, and print how the two compare."""
    from d3rlpy.torch_utility import TorchMiniBatch

    sys.path.insert(0, str(HERE.parent / "speed"))
    from d3rlpy_algorithms import algorithm_of

    first = written["minibatches"][0]
    algorithm = algorithm_of("iql")
    algorithm.create_impl(first["observation"].shape[1:], first["action"].shape[1])
    begin_alike(written, partial(pairs, modules=algorithm.impl.modules))
    for step, entries in enumerate(written["minibatches"]):
        observation, action, following, reward, terminated = (entries[key] for key in KEYS)
        rows = len(observation)
        batch = TorchMiniBatch(
            observations=observation,
            actions=action,
            rewards=reward.reshape(rows, 1),
            next_observations=following,
            next_actions=action,  # IQL reads neither these nor the returns
            returns_to_go=torch.zeros(rows, 1),
            terminals=terminated.float().reshape(rows, 1),
            intervals=torch.ones(rows, 1),
            device="cpu:0",
        )
        algorithm.impl.inner_update(batch, step)
    print_apart("iql", written, partial(pairs, modules=algorithm.impl.modules))


def main() -> None:
    """Train here, and compare in the interpreter of d3rlpy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--equal-weights", action="store_true", help="take all losses at the weights before the update")
    compare(
        parser,
        lambda args: train_here(args.updates, not args.equal_weights),
        lambda args, written: train_peer(written),
    )


if __name__ == "__main__":
    main()
