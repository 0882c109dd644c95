"""The states of several ranks in one snapshot: replicated parts once, the others for each rank."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import RlcoreError
from rlcore.state.snapshot import Snapshot

if TYPE_CHECKING:
    from rlcore.types.group import Group

# kinds of parts that differ from rank to rank
PER_RANK: Final = ("collector", "buffer", "hook", "metrics", "generators")
# kinds of parts that are the same on all ranks, bit for bit
REPLICATED: Final = ("progress", "transform", "model", "loss_module", "optimizer", "scheduler", "learner")
_NAME: Final = re.compile(r"rank-(\d+)/(.*)", re.DOTALL)


def own_name(name: str) -> str:
    """Return the name of a part without the prefix `rank-N/`."""
    match = _NAME.fullmatch(name)
    return name if match is None else match[2]


def of_each_rank(name: str) -> bool:
    """Return whether a part differs from rank to rank."""
    return _kind(name) in PER_RANK


def states_of_rank(states: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Return the states of one rank in a checkpoint: its own, and those of replicated parts."""
    matches = {name: _NAME.fullmatch(name) for name in states}
    if not rank:
        return {name: state for name, state in states.items() if matches[name] is None}
    same = {name: state for name, state in states.items() if matches[name] is None and _kind(name) in REPLICATED}
    return same | {match[2]: states[name] for name, match in matches.items() if match and int(match[1]) == rank}


def gathered(group: Group, snapshot: Snapshot, keepers: Collection[str] = ()) -> Snapshot:
    """Return the snapshot of all ranks on rank 0, and the argument on the others; every rank calls this.

    The parts of rank N are called `rank-N/NAME`, those of rank 0 and replicated parts `NAME`.

    Args:
        group: the ranks.
        snapshot: of this rank.
        keepers: names of parts that keep something of running episodes, which differ from rank to rank.

    Raises:
        RlcoreError: a replicated part is not the same on all ranks; the message names it.
    """
    of_rank = {name: state for name, state in snapshot.tree.items() if of_each_rank(name) or name in keepers}
    same = {name: state for name, state in snapshot.tree.items() if _kind(name) in REPLICATED and name not in of_rank}
    tensors = {tensor: snapshot.tensors[tensor] for name in of_rank for tensor in snapshot.names[name]}
    parts = group.gather({"digests": replace(snapshot, tree=same).digests(), "own": of_rank}, tensors)
    if group.rank:
        return snapshot
    _check_same([content["digests"] for content, _ in parts])
    tree, tensors = dict(snapshot.tree), dict(snapshot.tensors)
    for rank, (content, values) in enumerate(parts[1:], start=1):
        tree |= {f"rank-{rank}/{name}": _renamed(state, rank) for name, state in content["own"].items()}
        tensors |= {f"rank-{rank}/{name}": tensor for name, tensor in values.items()}
    return Snapshot.read(tree, tensors, snapshot.progress, snapshot.evaluation)


def _check_same(digests: Sequence[Mapping[str, str]]) -> None:
    for name, digest in digests[0].items():
        differing = [rank for rank, of_rank in enumerate(digests) if of_rank[name] != digest]
        if differing:
            raise RlcoreError(
                f"the {name} is not the same on all ranks any more: that of rank {differing[0]} is not that of rank 0. "
                "What changes it sees one rank alone; a part that learns from the batches of its rank cannot be used "
                "with [ranks]"
            )


def _renamed(tree: Any, rank: int) -> Any:
    """Return the tree of a state with `rank-N/` before the names of its tensors."""
    if isinstance(tree, list):
        return [_renamed(item, rank) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1 and tree.keys() <= {"$tensor", "$array"}:
        return {tag: f"rank-{rank}/{name}" for tag, name in tree.items()}
    return {key: _renamed(value, rank) for key, value in tree.items()}


def _kind(name: str) -> str:
    return name.partition(".")[0]
