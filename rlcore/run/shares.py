"""What each of several processes has of a config: numbers of the whole run are divided among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rlcore.config.problems import ConfigProblems
from rlcore.config.sections import Config, Section

# the numbers of the whole run
_DIVIDED: Final = {
    "env": ("num_envs",),
    "collector": ("frames_per_batch",),
    "buffer": ("minibatch_size", "capacity"),
}


def divided(config: Config, count: int) -> Config:
    """Return the config that each of `count` ranks builds.

    Raises:
        ConfigProblems: names every number that they cannot have equal shares of, and the nearest that they can.
    """
    problems = list(_indivisible(config, count))
    if problems:
        raise ConfigProblems(config.raw.path, problems)
    shares = {
        section: [_share(entry, section, count) for entry in config.sections.get(section, [])] for section in _DIVIDED
    }
    return replace(config, sections={**config.sections, **shares})


def _share(entry: Section, section: str, count: int) -> Section:
    numbers = {key: value // count for key, value in _numbers(entry, section)}
    return replace(entry, config=entry.config.model_copy(update=numbers))


def _indivisible(config: Config, count: int) -> Iterator[str]:
    for section in _DIVIDED:
        for entry in config.sections.get(section, []):
            if section == "env" and "num_envs" not in type(entry.config).model_fields:
                yield f"[env] {entry.provided} has no key num_envs, so {count} ranks cannot have shares of its envs"
            for key, value in _numbers(entry, section):
                if value % count:
                    below, above = value // count * count, -(-value // count) * count
                    nearest = f"{below} or {above}" if below else str(above)
                    yield (
                        f"[{section}] {key} = {value} is that of the whole run, and {count} ranks ([ranks] count) "
                        f"cannot have equal shares of it; set it to {nearest}"
                    )


def _numbers(entry: Section, section: str) -> list[tuple[str, int]]:
    return [(key, value) for key, value in iter(entry.config) if key in _DIVIDED[section] and isinstance(value, int)]
