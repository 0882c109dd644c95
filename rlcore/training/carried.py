"""What checkpoints carry of a run: its parts with a state, in order; taking their states and giving them back."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from rlcore.errors import HookError, RlcoreError, named
from rlcore.plugins.adapters import adapted
from rlcore.state.exactness import unrestored_parts
from rlcore.state.restoring import Restored, restore
from rlcore.training.parts import TrainerParts
from rlcore.types import Learner, Stateful
from rlcore.types.optional import offers
from rlcore.types.part import Part, defines, with_defaults

log = logging.getLogger(__name__)

# whose the state of a module is that a script registered
SCRIPT: Final = "script"


class Carried:
    """What checkpoints carry of a run.

    Args:
        parts: of the trainer; the parts with a state are in `parts.stateful`.

    Attributes:
        waiting: states of a checkpoint that a script has yet to register modules for, by name.
    """

    def __init__(self, parts: TrainerParts) -> None:
        self.waiting: dict[str, Any] = {}
        self._parts = parts

    def register(self, name: str, module: Any) -> bool:
        """Add a module of a script under a name; return whether it got a state that waited for it.

        Raises:
            HookError: the name is taken, or the module has no state.
        """
        if name in self._parts.stateful:
            owner = type(self._parts.stateful[name]).__name__
            raise HookError(f"register_module: the name {name!r} is taken by a {owner}; choose another one")
        if not offers(adapted(module), Stateful):
            kind = type(module).__name__
            raise HookError(f"register_module({name!r}): a {kind} has no state_dict and load_state_dict")
        self._hold({**self._parts.stateful, name: module}, {**self._parts.provenance.owners, name: SCRIPT})
        if name not in self.waiting:
            return False
        restore({name: module}, {name: self.waiting.pop(name)}, {})
        return True

    def forget(self, name: str) -> None:
        """Leave a part out of the checkpoints from here on."""
        parts, owners = dict(self._parts.stateful), dict(self._parts.provenance.owners)
        parts.pop(name)
        owners.pop(name, None)
        self._hold(parts, owners)

    def _hold(self, parts: dict[str, Any], owners: Mapping[str, str]) -> None:
        self._parts.stateful = in_order(parts)
        self._parts.provenance = replace(self._parts.provenance, owners=owners).with_observers(observers(parts))

    def restore(self, states: Mapping[str, Any], notes: Mapping[str, str], **options: Any) -> list[Restored]:
        """Give every part its state, as `rlcore.state.restoring.restore` does; note why the run goes on inexactly.

        The state of a module that a script has yet to register waits for that.
        """
        parts, owners = self._parts, options.get("owners") or {}
        self.waiting |= {
            name: state
            for name, state in states.items()
            if owners.get(name) == SCRIPT and name not in parts.stateful and name not in options.get("drop", ())
        }
        present = {name: state for name, state in states.items() if name not in self.waiting}
        report = restore(parts.stateful, present, notes, moved=parts.heart.beat, **options)
        if any(map(_learner_starts_over, report)):
            with_defaults(parts.learner, Learner).follow()  # one that was restored has followed already
        reasons = unrestored_parts(parts.stateful)
        for reason in reasons:
            log.warning("exact = false: %s", reason)
        parts.provenance = parts.provenance.with_reasons(reasons)
        return report


def _learner_starts_over(line: Restored) -> bool:
    return line.outcome == "starts over" and line.name.partition(".")[0] == "learner"


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
