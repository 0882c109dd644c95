"""What a run wrote down of its updates, and how far another library ends from it after the same ones."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

KEYS = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))
# part, our weight or bias, and theirs
Pair = tuple[str, Tensor, Tensor]


def train_noted(trainer: Any) -> dict[str, Any]:
    """Train, and return the weights before and after, and the minibatches."""
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    minibatches: list[dict[Any, Tensor]] = []
    update = trainer.learner.update

    def noted(minibatch: Any) -> Any:
        minibatches.append({key: minibatch[key].clone() for key in KEYS})
        return update(minibatch)

    trainer.learner.update = noted
    trainer.train()
    return {"before": before, "after": dict(trainer.model.state_dict()), "minibatches": minibatches}


def pairs_of_network(part: str, weights: dict[str, Tensor], prefix: str, theirs: nn.Module) -> Iterator[Pair]:
    """Return the pairs of a network, whose layers are named after a prefix here."""
    for number, layer in enumerate(linear_layers(theirs)):
        yield part, weights[f"{prefix}.layers.{number}.weight"], layer.weight
        yield part, weights[f"{prefix}.layers.{number}.bias"], layer.bias


def pairs_of_critics(part: str, weights: dict[str, Tensor], theirs: Iterable[nn.Module]) -> Iterator[Pair]:
    """Return the pairs of several critics, which are one batched network here."""
    for which, network in enumerate(theirs):
        for number, layer in enumerate(linear_layers(network)):
            yield part, weights[f"{part}.layers.{number}.weight"][which].T, layer.weight
            yield part, weights[f"{part}.layers.{number}.bias"][which, 0], layer.bias


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """Return the layers that have weights."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


@torch.no_grad()
def begin_alike(written: dict[str, Any], pairs: Callable[[dict[str, Tensor]], Iterable[Pair]]) -> None:
    """Give the other library the weights that the run began with."""
    for _, ours, theirs in pairs(written["before"]):
        theirs.copy_(ours)


@torch.no_grad()
def print_apart(name: str, written: dict[str, Any], pairs: Callable[[dict[str, Tensor]], Iterable[Pair]]) -> None:
    """Print for each part how far the two ended apart, as a fraction of how far the other library moved."""
    parts: dict[str, list[Tensor]] = {}
    for (part, ours, theirs), (_, began, _) in zip(pairs(written["after"]), pairs(written["before"]), strict=True):
        parts.setdefault(part, []).append(torch.stack([(theirs - began).abs().sum(), (theirs - ours).abs().sum()]))
    print(f"{name}, {len(written['minibatches'])} updates")
    for part, sums in parts.items():
        moved, apart = torch.stack(sums).sum(0).tolist()
        print(f"{part:15} apart / moved {apart / moved:.2e}")


def compare(
    parser: argparse.ArgumentParser,
    train_here: Callable[[argparse.Namespace], dict[str, Any]],
    train_peer: Callable[[argparse.Namespace, dict[str, Any]], None],
) -> None:
    """Train here, and compare in the interpreter of the peers, in which the same script runs once more.

    Args:
        parser: has the arguments of the script.
        train_here: returns what a run wrote down.
        train_peer: takes the same updates with the other library, and prints how the two compare.
    """
    parser.add_argument("--peers-python", help="interpreter of an environment with the other library")
    parser.add_argument("--written", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.written:
        train_peer(args, torch.load(args.written, weights_only=True))
        return
    written = train_here(args)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "updates.pt")
        torch.save(written, file)
        subprocess.run([args.peers_python or sys.executable, *sys.argv, "--written", file], check=True)
