"""Going on from a checkpoint: what may differ from the run that wrote it, and giving every component its state back.

Finding and verifying a checkpoint is in `checkpoint.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import ConfigError, MissingStateError, StorageError, did_you_mean
from rlcore.types import Stateful

# keys, and sections as a whole, that a resumed run may change without changing what is trained
FREE: Final = (
    *("run.name", "run.folder", "run.total_frames", "run.device", "run.threads"),
    *("plugins", "metrics", "evaluator", "logger", "checkpoint", "versions"),
)
WATCHING: Final = ("core:progress-bar", "core:console-table")
_LOGGER: Final = "logger."
_MISSING: Final = object()


@dataclass(frozen=True)
class ResumeOptions:
    """What a resume may do beyond going on with everything as it was.

    Attributes:
        drop: states of the checkpoint to leave unused.
        fresh: components to begin anew.
        accept_changes: go on with another config, without the promise of an exact resume.
    """

    drop: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    accept_changes: bool = False


@dataclass(frozen=True)
class Restored:
    """What became of one component in a resume."""

    name: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}"


def restore(
    components: Mapping[str, Any],
    states: Mapping[str, Any],
    notes: Mapping[str, str],
    owners: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    fresh: Collection[str] = (),
) -> list[Restored]:
    """Give every component its state back, in the order of `components`.

    Loggers may have come or gone since.

    Args:
        components: name to what takes part in checkpoints.
        states: name to state, from a checkpoint.
        notes: name to a remark on its outcome, such as another version.
        owners: name to the distribution that wrote its state, for messages.
        drop: states to leave unused.
        fresh: components to leave as they were built.

    Raises:
        ConfigError: a name in `drop` or `fresh` that is none.
        StorageError: a state without an owner here, a component without a state, or a state that does not fit.
    """
    _check_names(components, states, drop, fresh)
    drop = [*drop, *(name for name in _loggers(states) if name not in components and name not in drop)]
    fresh = [*fresh, *(name for name in _loggers(components) if name not in states)]
    _check_complete(components, states, owners or {}, drop, fresh)
    report = [Restored(name, "dropped") for name in drop]
    for name, component in components.items():
        if not isinstance(component, Stateful):
            report.append(Restored(name, "not stateful"))
        elif name in fresh:
            report.append(Restored(name, "starts anew"))
        else:
            try:
                component.load_state_dict(states[name])
            except Exception as error:  # a state that was made to harm raises anything
                raise StorageError(f"the state of {name} in the checkpoint does not fit: {error}") from error
            report.append(Restored(name, "restored" + notes.get(name, "")))
    return report


def _loggers(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(_LOGGER)]


def _check_names(
    components: Mapping[str, Any], states: Mapping[str, Any], drop: Collection[str], fresh: Collection[str]
) -> None:
    """Refuse a misspelt name, and one that would be dropped and restored at once."""
    for name in drop:
        if name not in states:
            raise ConfigError(f"--drop {name}: the checkpoint has no such state{did_you_mean(name, states)}")
        if name in components and name not in fresh:
            raise ConfigError(f"--drop {name}: this config builds it; to begin it anew, use --fresh {name}")
    stateful = [name for name, component in components.items() if isinstance(component, Stateful)]
    for name in fresh:
        if name not in stateful:
            raise ConfigError(
                f"--fresh {name}: this config builds no such part with a state{did_you_mean(name, stateful)}"
            )


def _check_complete(
    components: Mapping[str, Any],
    states: Mapping[str, Any],
    owners: Mapping[str, str],
    drop: Collection[str],
    fresh: Collection[str],
) -> None:
    orphans = [name for name in states if name not in components and name not in drop]
    if orphans:
        described = ", ".join(f"{name} (written by {owners[name]})" if owners.get(name) else name for name in orphans)
        raise MissingStateError(
            f"the checkpoint has state of {described}, which this config does not build; resume with the config that "
            f"wrote it, or leave the state out with --drop {orphans[0]}"
        )
    missing = [
        name
        for name, component in components.items()
        if isinstance(component, Stateful) and name not in states and name not in fresh
    ]
    if missing:
        raise MissingStateError(
            f"the checkpoint has no state of {', '.join(missing)}, which this config builds; resume with the config "
            f"that wrote it, or start it anew with --fresh {missing[0]}"
        )


def check_owners(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to give state to a component of another distribution than the one that wrote it.

    Raises:
        StorageError: a plugin was replaced by another that has its name; names both.
    """
    for name, owner in now.items():
        wrote = before.get(name, owner)
        if wrote and owner and wrote != owner:
            raise StorageError(
                f"{name} was written by {wrote}, and is provided by {owner} here; install {wrote} again, or go on "
                "with the other one and without the promise of an exact resume: --accept-changes"
            )


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each key of a resolved config that differs, apart from those that may."""
    if not before:
        return ["the config of the run cannot be read, so changes in it cannot be found"]
    before, now = _without_watching(before), _without_watching(now)
    found = _moved(before, now)
    left, right = _leaves(before), _leaves(now)
    for key in sorted({*left, *right}):
        if any(key == free or key.startswith(f"{free}.") for free in FREE):
            continue
        old, new = left.get(key, _MISSING), right.get(key, _MISSING)
        if old != new:
            found.append(f"{key} = {_shown(new)} here, {_shown(old)} in the run")
    return found


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another config; a run that was killed before it wrote its config has nothing to compare.

    Raises:
        ConfigError: names every key that differs.
    """
    found = changes(before, now) if before else []
    if found:
        raise ConfigError(
            "--resume: the config differs from that of the run:\n  " + "\n  ".join(found) + "\n"
            "Resume with the config of the run (leave CONFIG out: --resume RUN), or go on with the changes and without "
            "the promise of an exact resume: --accept-changes"
        )


def _without_watching(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config without the hooks that only show something; `--quiet` leaves them out."""
    return {**config, "hook": [hook for hook in config.get("hook", []) if hook.get("use") not in WATCHING]}


def _moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each repeated section whose entries stand in another order; hooks run in that order."""
    found = []
    for name in sorted({*before, *now} - set(FREE)):
        old, new = (_names(config.get(name)) for config in (before, now))
        old, new = [entry for entry in old if entry in new], [entry for entry in new if entry in old]
        if old != new:
            found.append(f"{name}: the order is {', '.join(new)} here, {', '.join(old)} in the run")
    return found


def _names(section: Any) -> list[str]:
    entries = section if isinstance(section, list) else []
    return [str(entry["name"]) for entry in entries if isinstance(entry, Mapping) and "name" in entry]


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return every value of a nested config by its dotted key."""
    if isinstance(value, Mapping):
        return {k: v for name, item in value.items() for k, v in _leaves(item, f"{path}.{name}".lstrip(".")).items()}
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        named = {str(item.get("name", index)): item for index, item in enumerate(value)}
        return _leaves(named, path)
    return {path: value}


def _shown(value: Any) -> str:
    return "absent" if value is _MISSING else repr(value)
