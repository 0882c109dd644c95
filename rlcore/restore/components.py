"""Giving every component its state back, and saying what became of each.

Finding and verifying a checkpoint is in `checkpoints/`; what may differ in the config in `config/changes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import (
    FROM_OUTSIDE,
    RlcoreError,
    StorageError,
    describe,
)
from rlcore.restore.choices import check_complete, check_names, options_for
from rlcore.restore.dependents import dependents
from rlcore.restore.fitting import check
from rlcore.types import Collector, Stateful
from rlcore.types.optional import offers
from rlcore.types.part import Part, with_defaults

_LOGGER: Final = "logger."


@dataclass(frozen=True)
class Restored:
    """What became of one component in a resume.

    Attributes:
        since: the component that starts over, where this one does so because of it.
    """

    name: str
    outcome: str
    since: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}" + (f", since {self.since} does" if self.since else "")


def told(report: Iterable[Restored]) -> Iterator[str]:
    """Yield what a resume says: what is restored in one line, and a line for each that is something else."""
    restored = [one.name for one in report if one.outcome == "restored"]
    if restored:
        yield f"restored: {', '.join(restored)}"
    yield from (str(one) for one in report if one.outcome not in ("restored", "not stateful"))


def restore(
    components: Mapping[str, Any],
    states: Mapping[str, Any],
    notes: Mapping[str, str],
    owners: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    fresh: Collection[str] = (),
    observers: Collection[str] = (),
    unusable: Mapping[str, str] | None = None,
    moved: Callable[[], object] = lambda: None,
) -> list[Restored]:
    """Give every component its state back, in the order of `components`.

    What only watches may have come or gone since. What depends on a part that starts over does so too. Where the
    running episodes do not go on, the method `forget_episodes()` of every part that has one is called.

    Args:
        components: name to what takes part in checkpoints.
        states: name to state, from a checkpoint.
        notes: name to a remark on its outcome, such as another version.
        owners: name to the distribution that wrote its state, for messages.
        drop: states to leave unused.
        fresh: components to leave as they were built.
        observers: names of states that are of components which only watched.
        unusable: when the config differs: name to the reason why a state in the checkpoint is of something else. The
            others are compared more closely then.
        moved: called before each component, as a large one takes its time.

    Raises:
        ConfigError: a name in `drop` or `fresh` that is none.
        StorageError: a state without an owner here, a component without a state, or a state that does not fit.
    """
    check_names(components, states, drop, fresh)
    watching = [name for name in states if name.startswith(_LOGGER) or name in observers]
    drop = list(dict.fromkeys([*drop, *(name for name in watching if name not in components)]))
    fresh = list(dict.fromkeys([*fresh, *_new_observers(components, states, unusable or {})]))
    following = dependents(components, fresh)
    starting_over = [*fresh, *following]
    check_complete(components, states, owners or {}, drop, starting_over)
    report = [Restored(name, "dropped") for name in drop if name not in components]
    problems = []
    for name, component in components.items():
        moved()
        if not offers(component, Stateful):
            report.append(Restored(name, "not stateful"))
        elif name in starting_over:
            report.append(Restored(name, "starts over", following.get(name, "")))
        else:
            problem = _load(name, component, states[name], unusable)
            problems += [problem] if problem else []
            report.append(Restored(name, "restored" + notes.get(name, "")))
    _refuse(problems)
    if _begins_episodes(components.get("collector"), states.get("collector"), starting_over):
        forget_episodes(components)
    return report


def _load(
    name: str, component: Any, state: Any, unusable: Mapping[str, str] | None
) -> tuple[str, str, BaseException | None] | None:
    """Give a component its state; return its name with what is wrong and the error, if it does not fit."""
    if unusable and name in unusable:
        return name, unusable[name], None
    try:
        check(component, state, closely=unusable is not None)
        component.load_state_dict(state)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # a state that was made to harm raises anything
        wrong = str(error) if isinstance(error, RlcoreError) else describe(error)
        return name, " ".join(wrong.split()), error
    return None


def _refuse(problems: list[tuple[str, str, BaseException | None]]) -> None:
    """Refuse what does not fit, all at once.

    Raises:
        StorageError: names every component, what is wrong, and how to begin without.
    """
    if not problems:
        return
    lines = [f"the state of {name} in the checkpoint does not fit: {wrong}" for name, wrong, _ in problems]
    options = options_for("--fresh", [name for name, _, _ in problems])
    cause = next((error for _, _, error in problems if error is not None), None)
    raise StorageError(
        "\n".join(lines) + f"\nresume with the config that wrote it, or begin without: {options}"
    ) from cause


def _new_observers(components: Mapping[str, Any], states: Mapping[str, Any], unusable: Mapping[str, str]) -> list[str]:
    """Return what only watches, and has no state of its own in the checkpoint: it begins here."""
    return [
        name
        for name, component in components.items()
        if (name.startswith(_LOGGER) or with_defaults(component, Part).observer)
        and offers(component, Stateful)
        and (name not in states or name in unusable)
    ]


def _begins_episodes(collector: Any, state: Any, starting_over: Collection[str]) -> bool:
    """Return whether a collector begins new episodes: as it is new, says so, or dropped the running ones of its state.

    It may have dropped them for what was so at the save alone, such as an episode too long to be recorded.
    """
    if "collector" in starting_over or with_defaults(collector, Collector).inexact() is not None:
        return True
    dropped_before = state.get("dropped_episodes", 0) if isinstance(state, Mapping) else 0
    return with_defaults(collector, Collector).dropped_episodes > dropped_before


def forget_episodes(components: Mapping[str, Any]) -> None:
    """Let parts drop what they keep of running episodes."""
    for component in components.values():
        with_defaults(component, Part).forget_episodes()
