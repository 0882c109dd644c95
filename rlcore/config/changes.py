"""What may differ between the config of a run and that of a resume, and one hash over the rest of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import xxhash

from rlcore.errors import ConfigError
from rlcore.plugins.core import CORE, provide_components

# keys, and sections as a whole, that a resumed run may change without changing what is trained; further ones are
# marked where they are declared, see `rlcore.types.settings.FREE_AT_RESUME`
FREE: Final = (
    *("run.name", "run.folder", "run.total_frames", "run.total_updates", "run.device", "run.threads"),
    *("plugins", "metrics", "evaluator", "logger", "checkpoint", "versions"),
)
# what `use` says of the hooks of the core that only show how a run goes
WATCHING: Final = tuple(f"{CORE}:{hook.name}" for hook in provide_components() if hook.shows)
_HOOK: Final = "hook."
_MISSING: Final = object()


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest records of a resolved config: all but the versions, which it has besides."""
    return {section: value for section, value in config.items() if section != "versions"}


def config_hash(config: Mapping[str, Any], free: Collection[str] = (), watching: Collection[str] = ()) -> str:
    """Return one hash over the keys of a resolved config that change results; the arguments are those of `changes`."""
    kept = _without_watching(config, watching)
    compared = {key: value for key, value in leaves(kept).items() if not _is_free(key, (*FREE, *free))}
    orders = {name: _names(section) for name, section in kept.items() if name not in FREE and _names(section)}
    return xxhash.xxh3_128_hexdigest(json.dumps([compared, orders], sort_keys=True).encode())


def changes(
    of_run: Mapping[str, Any],
    of_resume: Mapping[str, Any],
    free: Collection[str] = (),
    watching: Collection[str] = (),
    default: Collection[str] = (),
) -> list[str]:
    """Return a line for each key of a resolved config that differs, apart from those that may.

    Args:
        of_run: of the run.
        of_resume: of the resume.
        free: dotted keys that may differ, besides `FREE`.
        watching: names of hooks that only watch, which may come, go and change.
        default: dotted keys that have their defaults now, which may be absent in a run of an rlcore before them.
    """
    if not of_run:
        return ["the config of the run cannot be read, so changes in it cannot be found"]
    of_run, of_resume = (_without_watching(config, watching) for config in (of_run, of_resume))
    differences = _moved(of_run, of_resume)
    left, right = leaves(of_run), leaves(of_resume)
    keys_of_run = _keys_in(of_run)
    for key in sorted({*left, *right}):
        if _is_free(key, (*FREE, *free)):
            continue
        old, new = left.get(key, _MISSING), right.get(key, _MISSING)
        if old != new and not (old is _MISSING and _is_free(key, {*default} - keys_of_run)):
            differences.append(f"{key} = {_shown(new)} here, {_shown(old)} in the run")
    return differences


def check_unchanged(differences: Collection[str], foreign: str = "") -> None:
    """Refuse to go on where something differs.

    Args:
        differences: a line for each key of the config that differs.
        foreign: says so when the checkpoint is of another run; else empty.

    Raises:
        ConfigError: names all of it.
    """
    lines = (
        ["--resume: the config differs from that of the run:", *(f"  {line}" for line in differences)]
        if differences
        else []
    )
    lines += [f"--resume: {foreign}"] if foreign else []
    if lines:
        raise ConfigError(
            "\n".join(lines)
            + "\nResume with the config of the run (leave CONFIG out: --resume RUN), or go on with what "
            "is here and without the promise of an exact resume: --accept-changes"
        )


def hooks_among(parts: Collection[str]) -> set[str]:
    """Return the names of the hooks among the names of parts."""
    return {name.removeprefix(_HOOK) for name in parts if name.startswith(_HOOK)}


def entries_of(config: Mapping[str, Any], section: str) -> dict[str, Mapping[str, Any]]:
    """Return the entries of a section by name; the only one of a section that cannot be repeated by the empty name.

    Of several policies, each has an entry by its name.
    """
    value = config.get(section)
    if isinstance(value, list):
        return {str(entry.get("name", "")): entry for entry in value if isinstance(entry, Mapping)}
    if isinstance(value, Mapping) and "use" not in value:
        return {name: entry for name, entry in value.items() if isinstance(entry, Mapping)}
    return {"": value} if isinstance(value, Mapping) else {}


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return every value of a nested config by its dotted key; an entry of a repeated section goes by its name."""
    if isinstance(value, Mapping):
        return {k: v for name, item in value.items() for k, v in leaves(item, f"{path}.{name}".lstrip(".")).items()}
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        named = {str(item.get("name", index)): item for index, item in enumerate(value)}
        return leaves(named, path)
    return {path: list(value) if isinstance(value, tuple) else value}


def _keys_in(value: Any, path: str = "") -> set[str]:
    """Return the dotted key of everything that a config says, of tables and of empty lists too, which have no leaf."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        value = {str(item.get("name", index)): item for index, item in enumerate(value)}
    below = value.items() if isinstance(value, Mapping) else ()
    return {path}.union(*(_keys_in(item, f"{path}.{name}".lstrip(".")) for name, item in below))


def _is_free(key: str, free: Collection[str]) -> bool:
    starts_ranks = key.startswith("ranks.") and key != "ranks.count"  # which changes nothing that they do
    return starts_ranks or any(key == name or key.startswith(f"{name}.") for name in free)


def _without_watching(config: Mapping[str, Any], watching: Collection[str]) -> dict[str, Any]:
    """Return the config without the hooks that only show something; `--quiet` leaves them out."""

    def watches(hook: Mapping[str, Any]) -> bool:
        return hook.get("use") in WATCHING or hook.get("name") in watching

    return {**config, "hook": [hook for hook in config.get("hook", []) if not watches(hook)]}


def _moved(of_run: Mapping[str, Any], of_resume: Mapping[str, Any]) -> list[str]:
    """Return a line for each repeated section whose entries stand in another order; hooks run in that order."""
    lines = []
    for name in sorted({*of_run, *of_resume} - set(FREE)):
        old, new = (_names(config.get(name)) for config in (of_run, of_resume))
        old, new = [entry for entry in old if entry in new], [entry for entry in new if entry in old]
        if old != new:
            lines.append(f"{name}: the order is {', '.join(new)} here, {', '.join(old)} in the run")
    return lines


def _names(section: Any) -> list[str]:
    entries = section if isinstance(section, list) else []
    return [str(entry["name"]) for entry in entries if isinstance(entry, Mapping) and "name" in entry]


def _shown(value: Any) -> str:
    return "absent" if value is _MISSING else repr(value)
