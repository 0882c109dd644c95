"""In what the configs of several settings differ, and names for the settings made of that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rlcore.run_folder import leaves
from rlcore_plugin_reports.run_files import RunFiles

ABSENT: Final = object()
# more than this is no name but a table
_MOST_PARTS: Final = 3
_SEED: Final = re.compile(r"[-_]?(?:seed|s)?[-_]?\d+$")


def differing(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the dotted keys in which configs differ, with the value of each config, `ABSENT` where it has none."""
    each = [leaves(config) for config in configs]
    keys = dict.fromkeys(key for values in each for key in values)
    rows = {key: [values.get(key, ABSENT) for values in each] for key in keys}
    return {key: row for key, row in rows.items() if any(value != row[0] for value in row)}


def shown(value: Any) -> str:
    """Return a value of a config in few characters."""
    if value is ABSENT:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def labels(groups: Mapping[str, Sequence[RunFiles]]) -> dict[str, str]:
    """Return a name for each group of runs: what its config has that the others have not.

    Where that is nothing, or more than three keys, it is what the names of its runs begin with, without their seed.
    """
    stems = {name: stem(group) for name, group in groups.items()}
    if len(set(stems.values())) < len(stems):
        stems = {name: name for name in groups}
    if len(groups) < 2 or not all(group[0].config for group in groups.values()):
        return stems
    by_group = _parts([group[0].compared for group in groups.values()])
    made = {name: ", ".join(parts) for name, parts in zip(groups, by_group, strict=True)}
    fits = all(0 < len(parts) <= _MOST_PARTS for parts in by_group) and len(set(made.values())) == len(made)
    return made if fits else stems


def stem(group: Sequence[RunFiles]) -> str:
    """Return what the names of runs have in common, without a seed at their ends."""
    names = [run.folder.resolve().name for run in group]
    if len(names) == 1:
        return names[0]
    without = {_SEED.sub("", name) for name in names}
    return without.pop() if len(without) == 1 and "" not in without else names[0]


def _parts(configs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the parts of a name for each config; a component of another name stands for all of its keys."""
    rows = differing(configs)
    swapped = {
        key.removesuffix("use") for key, row in rows.items() if key.rpartition(".")[2] == "use" and ABSENT not in row
    }
    kept = {key: row for key, row in rows.items() if not _within(key, swapped)}
    one_sided = _entries(configs)
    kept = {key: kept[key] for key in sorted(kept) if not _within(key, {f"{entry}." for entry in one_sided})}
    short = Counter(key.rpartition(".")[2] for key in kept)
    parts = []
    for number, config in enumerate(configs):
        named = [shown(rows[f"{section}use"][number]).rpartition(":")[2] for section in sorted(swapped)]
        named += [entry.rpartition(".")[2] for entry in one_sided if entry in _named(config)]
        for key, row in kept.items():
            last = key.rpartition(".")[2]
            named.append(f"{last if short[last] == 1 else key}={shown(row[number])}")
        parts.append(named or ["as configured"])
    return parts


def _within(key: str, places: set[str]) -> bool:
    return any(key.startswith(place) for place in places)


def _entries(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the entries of repeated sections, such as `optimizer.adam`, that some configs have and others have not."""
    each = [_named(config) for config in configs]
    known = dict.fromkeys(entry for entries in each for entry in entries)
    return [entry for entry in known if not all(entry in entries for entries in each)]


def _named(config: Mapping[str, Any]) -> list[str]:
    return [
        f"{section}.{entry.get('name', number)}"
        for section, value in config.items()
        if isinstance(value, list)
        for number, entry in enumerate(value)
        if isinstance(entry, Mapping)
    ]
