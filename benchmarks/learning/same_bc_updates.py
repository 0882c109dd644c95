"""Whether updates of behaviour cloning are those of d3rlpy: same weights, same minibatches, compared at the end.

The learner of the task `bc-halfcheetah-medium-expert` updates on minibatches of its buffer; d3rlpy's own `inner_update`
begins from the same weights and takes the same minibatches. The line says how far the two ended apart, as a fraction of
how far they moved. Both compute in float64: the same 1,000 updates in float32 end 0.1 from there, since rounding
decides which units are active for a sample.

    python benchmarks/learning/make_data.py halfcheetah
    python benchmarks/learning/same_bc_updates.py --peers-python DIR/bin/python  # of an environment with d3rlpy
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from written_updates import Pair, begin_alike, compare, pairs_of_network, print_apart

TASK = "bc-halfcheetah-medium-expert"
KEYS = ("observation", "action")
HERE = Path(__file__).resolve().parent
TABLE = HERE / "table" / "offline.toml"


def train_here(updates: int, changes: list[str]) -> dict[str, Any]:
    """Return the weights before and after so many updates, and their minibatches."""
    from rlcore import build, load_config
    from rlcore.buffers import Minibatch

    task = tomllib.loads(TABLE.read_text())["task"][TASK]
    method, data = task["method"]["rlcore"], (TABLE.parent / task["data"]).resolve()
    length = (f"buffer.updates_per_iteration={updates}", f"run.total_updates={updates}", "learner.compile=false")
    settings = [*method["set"], f"buffer.path='{data}'", *length, *changes]
    trainer = build(load_config(TABLE.parent / method["config"], settings), write=False).trainer
    model = trainer.model.double()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    minibatches: list[dict[Any, Tensor]] = []
    for minibatch in trainer.buffer.minibatches(None):
        minibatches.append({key: minibatch[key].double() for key in KEYS})
        trainer.learner.update(Minibatch.of(minibatches[-1]))
    return {"before": before, "after": dict(model.state_dict()), "minibatches": minibatches}


def pairs(weights: dict[str, Tensor], imitator: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    yield from pairs_of_network("actor", weights, "actor.network", imitator)


def train_peer(written: dict[str, Any]) -> None:
    """Take the same updates with d3rlpy, and print how the two compare."""
    from d3rlpy.torch_utility import TorchMiniBatch

    sys.path.insert(0, str(HERE.parent / "speed"))
    from d3rlpy_algorithms import algorithm_of

    observation, action = (written["minibatches"][0][key] for key in KEYS)
    algorithm = algorithm_of("bc")
    algorithm.create_impl(observation.shape[1:], action.shape[1])
    both = partial(pairs, imitator=algorithm.impl.modules.imitator.double())
    begin_alike(written, both)
    for step, entries in enumerate(written["minibatches"]):
        observation, action = (entries[key] for key in KEYS)
        unread = torch.zeros(len(action), 1)  # cloning reads observations and actions alone
        batch = TorchMiniBatch(
            observations=observation,
            actions=action,
            rewards=unread,
            next_observations=observation,
            next_actions=action,
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
    compare(parser, lambda args: train_here(args.updates, args.set), lambda args, written: train_peer(written))


if __name__ == "__main__":
    main()
