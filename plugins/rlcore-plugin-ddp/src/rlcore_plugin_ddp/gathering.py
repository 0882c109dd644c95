"""The states of several ranks in one snapshot: replicated parts once, the others for each rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlcore.errors import RlcoreError
from rlcore.state import Snapshot, is_replicated, of_each_rank
from rlcore.types import Group


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
    same = {name: state for name, state in snapshot.tree.items() if is_replicated(name) and name not in of_rank}
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
