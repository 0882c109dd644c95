"""What a resume leaves out by the choice of its user: states that nobody takes, components that start over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import ConfigError, MissingStateError, did_you_mean
from rlcore.types import Stateful
from rlcore.types.optional import offers

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


def check_names(
    components: Mapping[str, Any], states: Mapping[str, Any], drop: Collection[str], fresh: Collection[str]
) -> None:
    """Refuse misspelt names, and one that would be dropped and restored at once.

    Raises:
        ConfigError: says what is wrong with each.
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
    """Refuse a state without a component here, and a component without a state, unless that was chosen.

    Raises:
        MissingStateError: names each, and what to choose.
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
    """Return what to write on the command line to say an option of each of these names."""
    return " ".join(f"{option} {name}" for name in names)
