"""What has a state that a checkpoint carries: its order, and who only watches."""

from __future__ import annotations

from typing import Any


def in_order(stateful: dict[str, Any]) -> dict[str, Any]:
    """Return the parts in the order of restoring.

    Progress comes first, since others follow it; the learner after what it drives; the generators last.
    """
    late = ("learner", "generators")
    early = {"progress": stateful["progress"]}
    middle = {name: value for name, value in stateful.items() if name not in late}
    return {**early, **middle, **{name: stateful[name] for name in late if name in stateful}}


def observers(stateful: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the parts that watch a run and do not change it."""
    return tuple(name for name, part in stateful.items() if getattr(part, "observer", False))
