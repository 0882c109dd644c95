"""The names of the states of several ranks in one checkpoint: replicated parts once, the others for each rank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

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


def is_replicated(name: str) -> bool:
    """Return whether a part is the same on all ranks, bit for bit."""
    return _kind(name) in REPLICATED


def states_of_rank(states: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Return the states of one rank in a checkpoint: its own, and those of replicated parts."""
    matches = {name: _NAME.fullmatch(name) for name in states}
    if not rank:
        return {name: state for name, state in states.items() if matches[name] is None}
    same = {name: state for name, state in states.items() if matches[name] is None and is_replicated(name)}
    return same | {match[2]: states[name] for name, match in matches.items() if match and int(match[1]) == rank}


def _kind(name: str) -> str:
    return name.partition(".")[0]
