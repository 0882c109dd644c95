"""The state of a run in memory: snapshots, their hashes, restoring the parts, and the record of what bits depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.state.fitting import check_array as check_array
    from rlcore.state.fitting import check_state as check_state
    from rlcore.state.fitting import optimizer_of as optimizer_of
    from rlcore.state.generators import seed_all as seed_all
    from rlcore.state.generators import untouched_generators as untouched_generators
    from rlcore.state.kinds import KINDS as KINDS
    from rlcore.state.kinds import dtype_of as dtype_of
    from rlcore.state.kinds import kind_of as kind_of
    from rlcore.state.memory import bytes_of as bytes_of
    from rlcore.state.memory import copy_in_pieces as copy_in_pieces
    from rlcore.state.memory import pieces as pieces
    from rlcore.state.ranks import is_replicated as is_replicated
    from rlcore.state.ranks import of_each_rank as of_each_rank
    from rlcore.state.snapshot import LastGoodState as LastGoodState
    from rlcore.state.snapshot import Snapshot as Snapshot
    from rlcore.state.snapshot import add_tensor as add_tensor
    from rlcore.state.sources import modules_of as modules_of
    from rlcore.state.tree import flatten as flatten
    from rlcore.state.tree import through_checkpoint as through_checkpoint
    from rlcore.state.tree import unflatten as unflatten

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.state.fitting": "check_array check_state optimizer_of",
        "rlcore.state.generators": "seed_all untouched_generators",
        "rlcore.state.memory": "bytes_of copy_in_pieces pieces",
        "rlcore.state.tree": "flatten through_checkpoint unflatten",
        "rlcore.state.kinds": "KINDS dtype_of kind_of",
        "rlcore.state.snapshot": "LastGoodState Snapshot add_tensor",
        "rlcore.state.sources": "modules_of",
        "rlcore.state.ranks": "is_replicated of_each_rank",
    },
)
