"""What each of several processes has of a config: numbers of the whole run are divided among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rlcore.config import ConfigProblems
from rlcore.run import Config, Section

# the sections of the parts that each rank has for itself
_DIVIDED: Final = ("env", "collector", "buffer")


def divided(config: Config, count: int) -> Config:
    """Return the config that each of `count` ranks builds.

    Raises:
        ConfigProblems: names every number that they cannot have equal shares of, and the nearest that they can.
    """
    problems = list(_indivisible(config, count))
    if problems:
        raise ConfigProblems(config.raw.path, problems)
    shares = {section: [_share(entry, count) for entry in config.sections.get(section, [])] for section in _DIVIDED}
    return replace(config, sections={**config.sections, **shares})


def _share(entry: Section, count: int) -> Section:
    numbers = {key: value // count for key, value in _numbers(entry)}
    return replace(entry, config=entry.config.model_copy(update=numbers))


def _indivisible(config: Config, count: int) -> Iterator[str]:
    for section in _DIVIDED:
        for entry in config.sections.get(section, []):
            keys = entry.provided.component.divided_keys
            if section == "env" and type(entry.config).model_fields.keys().isdisjoint(keys):
                named = " or ".join(keys) or "that is divided"
                yield f"[env] {entry.provided} has no key {named}, so {count} ranks cannot have shares of its envs"
            for key, value in _numbers(entry):
                if value % count:
                    below, above = value // count * count, -(-value // count) * count
                    nearest = f"{below} or {above}" if below else str(above)
                    yield (
                        f"[{section}] {key} = {value} is that of the whole run, and {count} ranks ([ranks] count) "
                        f"cannot have equal shares of it; set it to {nearest}"
                    )


def _numbers(entry: Section) -> list[tuple[str, int]]:
    keys = entry.provided.component.divided_keys
    return [(key, value) for key, value in iter(entry.config) if key in keys and isinstance(value, int)]
