"""Restoring every component from the states of a checkpoint, with a report of the outcome.

`checkpoints/` finds and verifies a checkpoint; `config/changes.py` says which keys of a config may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from rlcore.errors import (
    FROM_OUTSIDE,
    ConfigError,
    MissingStateError,
    RlcoreError,
    StorageError,
    describe,
    did_you_mean,
)
from rlcore.state.fitting import check, optimizer_of
from rlcore.types import Collector, Stateful
from rlcore.types.hook_parts import HookObject
from rlcore.types.optional import offers
from rlcore.types.part import Part, with_defaults

_LOGGER: Final = "logger."
# checkpoints are ordered by the clocks: after a reset the new ones would sort before the old ones
_CLOCKS: Final = "progress"


@dataclass(frozen=True)
class Restored:
    """Outcome of a resume for one component.

    Attributes:
        since: another component that starts over, where it is the reason why this one does.
    """

    name: str
    outcome: str
    since: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}" + (f", since {self.since} does" if self.since else "")


def told(report: Iterable[Restored]) -> Iterator[str]:
    """Yield the lines of a report: one with all restored components, and one for each other outcome."""
    restored = [entry.name for entry in report if entry.outcome == "restored"]
    if restored:
        yield f"restored: {', '.join(restored)}"
    yield from (str(entry) for entry in report if entry.outcome not in ("restored", "not stateful"))


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
    """Restore every component from its state, in the order of `components`.

    A component that only watches may be new or gone. A component that depends on one that starts over does so too.
    Where running episodes do not go on, `forget_episodes()` of the parts is called.

    Args:
        components: name to component.
        states: name to state, from a checkpoint.
        notes: name to a remark on its outcome, such as another version.
        owners: name to the distribution that wrote its state, for messages.
        drop: names of states to leave unused.
        fresh: names of components to leave as they were built.
        observers: names of states of components that only watched.
        unusable: where the config differs, name to the reason why a state is of no use here. The other states are
            compared more closely then.
        moved: called before each component, so that the watchdog sees a large one move.

    Raises:
        ConfigError: a name in `drop` or `fresh` does not exist.
        StorageError: a state has no component here, a component has no state, or a state does not fit.
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
    """Restore a component from its state; where that fails, return its name, a message and the error."""
    if unusable and name in unusable:
        return name, unusable[name], None
    try:
        check(component, state, closely=unusable is not None)
        component.load_state_dict(state)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # a manipulated state raises errors of any kind
        wrong = str(error) if isinstance(error, RlcoreError) else describe(error)
        return name, " ".join(wrong.split()), error
    return None


def _refuse(problems: list[tuple[str, str, BaseException | None]]) -> None:
    """Raise one error for all states that do not fit.

    Raises:
        StorageError: the message names every component, what is wrong, and the options that start it over.
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
    """Return the components that only watch and have no usable state in the checkpoint: they start over."""
    return [
        name
        for name, component in components.items()
        if (name.startswith(_LOGGER) or with_defaults(component, Part).observer)
        and offers(component, Stateful)
        and (name not in states or name in unusable)
    ]


def _begins_episodes(collector: Any, state: Any, starting_over: Collection[str]) -> bool:
    """Return whether a collector begins new episodes instead of the running ones in its state.

    It starts over, is never exact, or dropped more episodes in `load_state_dict` than before the save.
    """
    if "collector" in starting_over or with_defaults(collector, Collector).inexact() is not None:
        return True
    dropped_before = state.get("dropped_episodes", 0) if isinstance(state, Mapping) else 0
    return with_defaults(collector, Collector).dropped_episodes > dropped_before


def forget_episodes(components: Mapping[str, Any]) -> None:
    """Call `forget_episodes()` of every component."""
    for component in components.values():
        with_defaults(component, Part).forget_episodes()


def check_names(
    components: Mapping[str, Any], states: Mapping[str, Any], drop: Collection[str], fresh: Collection[str]
) -> None:
    """Refuse names in `drop` and `fresh` that do not exist, or that name the wrong option.

    Raises:
        ConfigError: the message says what is wrong with each.
    """
    problems = []
    for name in drop:
        if name not in states:
            problems.append(f"--drop {name}: the checkpoint has no such state{did_you_mean(name, states)}")
        elif name in components and name not in fresh:
            problems.append(f"--drop {name}: this config builds it; to start it over, use --fresh {name}")
    stateful = [name for name, component in components.items() if offers(component, Stateful)]
    for name in fresh:
        if name not in stateful:
            problems.append(
                f"--fresh {name}: this config builds no such part with a state{did_you_mean(name, stateful)}"
            )
        elif name == _CLOCKS:
            problems.append(
                f"--fresh {name}: a run cannot set its clocks back, since its checkpoints are ordered by them; begin "
                "another run"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def check_complete(
    components: Mapping[str, Any],
    states: Mapping[str, Any],
    owners: Mapping[str, str],
    drop: Collection[str],
    fresh: Collection[str],
) -> None:
    """Refuse a state without a component and a component without a state, unless `drop` or `fresh` names it.

    Raises:
        MissingStateError: the message names each, and the options to choose from.
    """
    problems = []
    orphans = [name for name in states if name not in components and name not in drop]
    if orphans:
        described = ", ".join(f"{name} (written by {owners[name]})" if owners.get(name) else name for name in orphans)
        problems.append(
            f"the checkpoint has state of {described}, which this config does not build; resume with the config that "
            f"wrote it, or leave the state out with {options_for('--drop', orphans)}"
        )
    missing = [
        name
        for name, component in components.items()
        if offers(component, Stateful) and name not in states and name not in fresh
    ]
    if missing:
        problems.append(
            f"the checkpoint has no state of {', '.join(missing)}, which this config builds; resume with the config "
            f"that wrote it, or start it over with {options_for('--fresh', missing)}"
        )
    if problems:
        raise MissingStateError("\n".join(problems))


def options_for(option: str, names: list[str]) -> str:
    """Return an option for each of several names, as it is written on the command line."""
    return " ".join(f"{option} {name}" for name in names)


def dependents(components: Mapping[str, Any], fresh: Collection[str]) -> dict[str, str]:
    """Return the components that start over because others do, each with the one that it follows.

    An optimizer follows the modules with its parameters, as its moments are of their gradients. A module follows a
    module with shared parameters, and a scheduler of torch its optimizer.

    Args:
        components: name to component.
        fresh: names of the components that start over.
    """
    following: dict[str, str] = {}
    waiting = [name for name in fresh if name in components]
    while waiting:
        source = waiting.pop(0)
        for name, component in components.items():
            if name not in fresh and name not in following and _follows(component, components[source]):
                following[name] = source
                waiting.append(name)
    return following


def _follows(component: Any, source: Any) -> bool:
    if isinstance(source, nn.Module):
        parameters = {id(parameter) for parameter in source.parameters()}
        return any(id(parameter) in parameters for parameter in _parameters(component))
    optimizer = _optimizer(source)
    return optimizer is not None and (_optimizer(component) is optimizer or _scheduled(component) is optimizer)


def _parameters(component: Any) -> list[Any]:
    if isinstance(component, nn.Module):
        return list(component.parameters())
    optimizer = _optimizer(component)
    return [] if optimizer is None else [p for group in optimizer.param_groups for p in group["params"]]


def _optimizer(component: Any) -> torch.optim.Optimizer | None:
    """Return the optimizer that a component is, or that it holds as a hook; None for others."""
    if isinstance(component, torch.optim.lr_scheduler.LRScheduler):
        return None
    if isinstance(component, torch.optim.Optimizer):  # first, as it may have another one inside
        return component
    optimizer = optimizer_of(component)
    return optimizer if isinstance(optimizer, torch.optim.Optimizer) else None


def _scheduled(component: Any) -> Any:
    """Return the optimizer of a scheduler of torch, which the component is or holds as a hook; None for others."""
    scheduler = with_defaults(component, HookObject).scheduler or component
    return scheduler.optimizer if isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler) else None
