"""Going on from a checkpoint: giving every component its state back, and saying what became of each.

Finding and verifying a checkpoint is in `checkpoints/`; what may differ in the config in `config/changes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import (
    FROM_OUTSIDE,
    ConfigError,
    MissingStateError,
    RlcoreError,
    StorageError,
    describe,
    did_you_mean,
)
from rlcore.restore.dependents import dependents
from rlcore.restore.fitting import check
from rlcore.types import Stateful

_LOGGER: Final = "logger."
# checkpoints are ordered by the clocks: those of a run that counted again would stand behind those that it has
_CLOCKS: Final = "progress"


@dataclass(frozen=True)
class ResumeOptions:
    """What a resume may do beyond going on with everything as it was.

    Attributes:
        drop: states of the checkpoint to leave unused.
        fresh: components to start over.
        accept_changes: go on with another config, without the promise of an exact resume.
    """

    drop: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    accept_changes: bool = False


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
    _check_names(components, states, drop, fresh)
    watching = [name for name in states if name.startswith(_LOGGER) or name in observers]
    drop = list(dict.fromkeys([*drop, *(name for name in watching if name not in components)]))
    fresh = list(dict.fromkeys([*fresh, *_new_observers(components, states, unusable or {})]))
    following = dependents(components, fresh)
    starting_over = [*fresh, *following]
    _check_complete(components, states, owners or {}, drop, starting_over)
    report = [Restored(name, "dropped") for name in drop if name not in components]
    problems = []
    for name, component in components.items():
        moved()
        if not isinstance(component, Stateful):
            report.append(Restored(name, "not stateful"))
        elif name in starting_over:
            report.append(Restored(name, "starts over", following.get(name, "")))
        else:
            problem = _load(name, component, states[name], unusable)
            problems += [problem] if problem else []
            report.append(Restored(name, "restored" + notes.get(name, "")))
    _refuse(problems)
    if _begins_episodes(components.get("collector"), states.get("collector"), starting_over):
        _forget_episodes(components)
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
    options = _options("--fresh", [name for name, _, _ in problems])
    cause = next((error for _, _, error in problems if error is not None), None)
    raise StorageError(
        "\n".join(lines) + f"\nresume with the config that wrote it, or begin without: {options}"
    ) from cause


def _new_observers(components: Mapping[str, Any], states: Mapping[str, Any], unusable: Mapping[str, str]) -> list[str]:
    """Return what only watches, and has no state of its own in the checkpoint: it begins here."""
    return [
        name
        for name, component in components.items()
        if (name.startswith(_LOGGER) or getattr(component, "observer", False))
        and isinstance(component, Stateful)
        and (name not in states or name in unusable)
    ]


def _begins_episodes(collector: Any, state: Any, starting_over: Collection[str]) -> bool:
    """Return whether a collector begins new episodes: as it is new, says so, or dropped the running ones of its state.

    It may have dropped them for what was so at the save alone, such as an episode too long to be recorded.
    """
    inexact = getattr(collector, "inexact", None)
    if "collector" in starting_over or (inexact is not None and inexact() is not None):
        return True
    dropped = state.get("dropped_episodes", 0) if isinstance(state, Mapping) else 0
    return bool(getattr(collector, "dropped_episodes", 0) > dropped)


def _forget_episodes(components: Mapping[str, Any]) -> None:
    """Let parts drop what they keep of running episodes."""
    for component in components.values():
        forget = getattr(component, "forget_episodes", None)
        if forget is not None:
            forget()


def _check_names(
    components: Mapping[str, Any], states: Mapping[str, Any], drop: Collection[str], fresh: Collection[str]
) -> None:
    """Refuse misspelt names, and one that would be dropped and restored at once."""
    problems = []
    for name in drop:
        if name not in states:
            problems.append(f"--drop {name}: the checkpoint has no such state{did_you_mean(name, states)}")
        elif name in components and name not in fresh:
            problems.append(f"--drop {name}: this config builds it; to start it over, use --fresh {name}")
    stateful = [name for name, component in components.items() if isinstance(component, Stateful)]
    for name in fresh:
        if name not in stateful:
            problems.append(
                f"--fresh {name}: this config builds no such part with a state{did_you_mean(name, stateful)}"
            )
        elif name == _CLOCKS:
            problems.append(
                f"--fresh {name}: a run cannot count again, since its checkpoints are ordered by its clocks; begin "
                "another run"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def _check_complete(
    components: Mapping[str, Any],
    states: Mapping[str, Any],
    owners: Mapping[str, str],
    drop: Collection[str],
    fresh: Collection[str],
) -> None:
    problems = []
    orphans = [name for name in states if name not in components and name not in drop]
    if orphans:
        described = ", ".join(f"{name} (written by {owners[name]})" if owners.get(name) else name for name in orphans)
        problems.append(
            f"the checkpoint has state of {described}, which this config does not build; resume with the config that "
            f"wrote it, or leave the state out with {_options('--drop', orphans)}"
        )
    missing = [
        name
        for name, component in components.items()
        if isinstance(component, Stateful) and name not in states and name not in fresh
    ]
    if missing:
        problems.append(
            f"the checkpoint has no state of {', '.join(missing)}, which this config builds; resume with the config "
            f"that wrote it, or start it over with {_options('--fresh', missing)}"
        )
    if problems:
        raise MissingStateError("\n".join(problems))


def _options(option: str, names: list[str]) -> str:
    return " ".join(f"{option} {name}" for name in names)


def check_owners(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to give state to a component of another distribution than the one that wrote it.

    Raises:
        StorageError: a plugin was replaced by another that has its name; names both.
    """
    for line in other_owners(before, now):
        raise StorageError(
            f"{line}; install what wrote it again, or go on with the other one and without the promise of an exact "
            "resume: --accept-changes"
        )


def other_owners(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each component of another distribution than the one that wrote its state."""
    return [
        f"{name} was written by {before[name]}, and is provided by {owner} here"
        for name, owner in now.items()
        if owner and before.get(name, owner) not in ("", owner)
    ]
