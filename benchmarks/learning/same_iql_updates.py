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
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
KEYS = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))
# with which d3rlpy begins; the spread has no influence on critics and value
LOG_STD = -1.5


def train_here(updates: int, in_turn: bool) -> dict[str, Any]:
    """Return the weights before and after so many updates of a run, and their minibatches."""
    from rlcore import build, load_config

    changes = (f"run.total_updates={updates}", f"loss.in_turn={str(in_turn).lower()}", "evaluator.every=1_000_000")
    trainer = build(load_config(HERE / "iql-in-turn.toml", changes), write=False).trainer
    with torch.no_grad():
        trainer.model.get_submodule("spread").log_std.fill_(LOG_STD)
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    minibatches: list[dict[Any, Tensor]] = []
    update = trainer.learner.update

    def noted(minibatch: Any) -> Any:
        minibatches.append({key: minibatch[key].clone() for key in KEYS})
        return update(minibatch)

    trainer.learner.update = noted  # type: ignore[method-assign]
    trainer.train()
    return {"before": before, "after": dict(trainer.model.state_dict()), "minibatches": minibatches}


def pairs(weights: dict[str, Tensor], modules: Any) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Return the part, our weight and theirs, for each weight and bias."""
    for part, theirs in {"actor.network": modules.policy, "value": modules.value_func}.items():
        for number, layer in enumerate(linear_layers(theirs)):
            yield part.partition(".")[0], weights[f"{part}.layers.{number}.weight"], layer.weight
            yield part.partition(".")[0], weights[f"{part}.layers.{number}.bias"], layer.bias
    for part, networks in {"critics": modules.q_funcs, "target_critics": modules.targ_q_funcs}.items():
        for which, network in enumerate(networks):
            for number, layer in enumerate(linear_layers(network)):
                yield part, weights[f"{part}.layers.{number}.weight"][which].T, layer.weight
                yield part, weights[f"{part}.layers.{number}.bias"][which, 0], layer.bias


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """Return the layers that have weights."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def train_peer(written: dict[str, Any]) -> None:
    """Take the same updates with d3rlpy, and print how the two compare."""
    from d3rlpy.torch_utility import TorchMiniBatch

    sys.path.insert(0, str(HERE.parent / "speed"))
    from d3rlpy_algorithms import algorithm_of

    first = written["minibatches"][0]
    algorithm = algorithm_of("iql")
    algorithm.create_impl(first["observation"].shape[1:], first["action"].shape[1])
    with torch.no_grad():
        for _, ours, theirs in pairs(written["before"], algorithm.impl.modules):
            theirs.copy_(ours)
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
    parts: dict[str, list[Tensor]] = {}
    began = [ours for _, ours, _ in pairs(written["before"], algorithm.impl.modules)]
    with torch.no_grad():
        for (part, ours, theirs), start in zip(pairs(written["after"], algorithm.impl.modules), began, strict=True):
            parts.setdefault(part, []).append(torch.stack([(theirs - start).abs().sum(), (theirs - ours).abs().sum()]))
    print(f"iql, {len(written['minibatches'])} updates")
    for part, sums in parts.items():
        moved, apart = torch.stack(sums).sum(0).tolist()
        print(f"{part:15} apart / moved {apart / moved:.2e}")


def main() -> None:
    """Train here, and compare in the interpreter of d3rlpy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--equal-weights", action="store_true", help="take all losses at the weights before the update")
    parser.add_argument("--peers-python", help="interpreter of an environment with d3rlpy")
    parser.add_argument("--written", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.written:
        train_peer(torch.load(args.written, weights_only=True))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "updates.pt")
        torch.save(train_here(args.updates, not args.equal_weights), file)
        subprocess.run([args.peers_python or sys.executable, __file__, "--written", file], check=True)


if __name__ == "__main__":
    main()
