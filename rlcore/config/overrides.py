"""Single keys that replace those of a config: `section.key=value`, as after `--set`."""

from __future__ import annotations

import tomllib
from typing import Any, Final

from rlcore.config.core import OBSERVERS
from rlcore.config.entries import component_of, find, names_of
from rlcore.config.raw import DEFAULT, OVERRIDE, RawConfig
from rlcore.errors import ConfigError, did_you_mean, nearest
from rlcore.plugins.component import COMPONENT_SECTIONS

_REPEATED: Final = tuple(section for section, (_, repeated) in COMPONENT_SECTIONS.items() if repeated)


def override(raw: RawConfig, text: str) -> None:
    """Set one key of a config.

    Args:
        raw: the config; changed in place.
        text: `section.key=value`; the value is TOML, or else a string. Of a section that may stand several times
            `section.NUMBER.key`, `section.NAME.key`, or `section.key` for the first one; `section=[]` for none at all.

    Raises:
        ConfigError: it does not read so, or there is no such entry.
    """
    key, equals, value = text.partition("=")
    path = key.strip().split(".")
    if path[0] in _REPEATED and len(path) == 1 and equals and _value(value) == []:
        raw.values[path[0]] = []
        return
    if not equals or len(path) < 2 or not all(path):
        raise ConfigError(f"override {text!r} must read section.key=value")
    target, keys = raw.values, path
    if path[0] in _REPEATED:
        number, keys = _place(raw, path, text)
        target, path = _entry(raw, path[0], number, text), [path[0], str(number), *keys]
    if not keys:
        raise ConfigError(f"override {text!r} must read section.number.key=value")
    for part in keys[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise ConfigError(f"override {text!r}: {part!r} is not a table")
    target[keys[-1]] = _value(value)
    raw.sources[".".join(path)] = OVERRIDE


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _place(raw: RawConfig, path: list[str], text: str) -> tuple[int, list[str]]:
    """Return the number of the entry that an override means, by its number, its name or as the first, and the keys."""
    if path[1].isdecimal():
        return int(path[1]), path[2:]
    if len(path) > 2:
        number = _named(raw, path)
        if number is not None:
            return number, path[2:]
        _check_no_name(raw, path, text)
    return 0, path[1:]


def _named(raw: RawConfig, path: list[str]) -> int | None:
    """Return the number of the entry of that name, making that of the command line where nothing is said of any."""
    section, name = path[:2]
    entries = raw.values.get(section)
    observer = OBSERVERS.get(section, {})
    if entries is None and name == component_of(observer.get("use")):
        raw.values[section] = [dict(observer)]
        raw.sources |= {f"{section}.0.{key}": DEFAULT for key in observer}
        return 0
    return find(entries or [], name)


def _check_no_name(raw: RawConfig, path: list[str], text: str) -> None:
    """Refuse what was meant for the name of an entry: no key has a hyphen, and a key of the first one is no mistake.

    Raises:
        ConfigError: says which entries there are.
    """
    section, name = path[:2]
    entries = raw.values.get(section) or []
    names = list(dict.fromkeys([*names_of(entries), *(component_of(entry.get("use")) for entry in entries)]))
    if entries and isinstance(entries[0].get(name), dict):
        return
    if "-" in name or name in names or nearest(name, names):
        several = "several are called so" if name in names else f"there is no {name!r}"
        guess = "" if name in names else did_you_mean(name, names)
        choices = f"; there are {', '.join(names_of(entries))}" if entries else "; there is none at all"
        raise ConfigError(f"override {text!r}: of [[{section}]] {several}{guess or choices}")


def _entry(raw: RawConfig, section: str, number: int, text: str) -> dict[str, Any]:
    """Return entry `number` of a repeated section; the number after the last one makes a new entry."""
    entries = raw.values.setdefault(section, [])
    if number > len(entries):
        raise ConfigError(f"override {text!r}: there are only {len(entries)} [[{section}]] sections")
    if number == len(entries):
        entries.append({})
    return entries[number]  # type: ignore[no-any-return]
