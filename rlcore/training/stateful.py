"""What has a state that a checkpoint carries: its order, who only watches, and the states of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore.errors import HookError, RlcoreError, named
from rlcore.types.outputs import Stateful
from rlcore.types.part import Part, defines, with_defaults


def in_order(stateful: dict[str, Any]) -> dict[str, Any]:
    """Return the parts in the order of restoring.

    Progress comes first, since others follow it; the learner after what it drives; the generators last.
    """
    early = {"progress": stateful["progress"]}
    learners = [name for name in stateful if name.partition(".")[0] == "learner"]
    late = [*learners, *(name for name in stateful if name == "generators")]
    middle = {name: value for name, value in stateful.items() if name not in late}
    return {**early, **middle, **{name: stateful[name] for name in late}}


def observers(stateful: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the parts that watch a run and do not change it."""
    return tuple(name for name, part in stateful.items() if with_defaults(part, Part).observer)


def states_of(stateful: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of each part that has one; an error of a part names it."""
    states = {}
    for name, part in stateful.items():
        if defines(part, Stateful.state_dict):  # parts without one are listed too, since they may make a resume inexact
            kind = HookError if name.startswith("hook.") else RlcoreError
            with named(f"{name.replace('.', ' ')} in its state_dict", kind):
                states[name] = part.state_dict()
    return states
