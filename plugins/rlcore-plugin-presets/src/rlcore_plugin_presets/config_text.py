"""The text of a config, made of a preset: its name, its environment and other keys put in, its comments kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import tomlkit

from rlcore import __version__
from rlcore.config import SAFE_NAME, RawConfig, read
from rlcore.errors import ConfigError
from rlcore.plugins import is_repeated
from rlcore_plugin_presets.presets import TABLE, Preset

_USE: Final = "use"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def run_name(preset: Preset, env_id: str | None) -> str:
    """Return what a run is called that nobody named: algorithm and environment."""
    env = env_id or preset.env_id
    name = f"{preset.about.algorithm}-{env.rpartition(':')[2]}" if env else preset.name
    return _UNSAFE.sub("-", name)[:100]


def checked_name(name: str) -> str:
    """Return a name that a run can have.

    Raises:
        ConfigError: it cannot.
    """
    if not SAFE_NAME.fullmatch(name):
        raise ConfigError(
            f"the name {name!r} cannot be that of a folder: letters, digits, '.', '_' and '-', at most 100, "
            "first a letter or digit"
        )
    return name


def filled(preset: Preset, name: str, env_id: str | None, keys: Mapping[tuple[str, ...], Any] | None = None) -> str:
    """Return the text of a config, with the comments of the preset.

    Args:
        preset: where the text comes from.
        name: of the run.
        env_id: of the environment; None for that of the preset.
        keys: further values by their path, such as `("loss", "gamma")` or `("optimizer", "0", "lr")`. Another `use`
            takes the keys of the component before it away.
    """
    document = tomlkit.parse(preset.text)
    document.remove(TABLE)
    values: dict[tuple[str, ...], Any] = {("run", "name"): name}
    if env_id is not None and preset.env_id is not None:
        values["env", preset.about.env_key] = env_id
    values |= keys or {}
    _set(document, values)
    return "\n".join([*_heading(preset, env_id), "", tomlkit.dumps(document).strip()]) + "\n"


def remedied(text: str, remedy: Mapping[str, Any]) -> str:
    """Return the text of a config with a remedy; see `ConfigError`."""
    sections = re.split(r"\n{2,}", text.strip())
    for name, change in remedy.items():
        header = f"[[{name}]]" if is_repeated(name) else f"[{name}]"
        if isinstance(change, list):
            place = next((n for n, own in enumerate(sections) if _header(own) in (header, "[model]")), len(sections))
            sections[place:place] = [_with_keys(header, name, table) for table in change]
        elif is_repeated(name):
            uses = {own: tomllib.loads(own)[name][0][_USE] for own in sections if _header(own) == header}
            sections = [own for own in sections if uses.get(own, "").rpartition(":")[2] not in change]
        else:
            sections = [_with_keys(own, name, change) if _header(own) == header else own for own in sections]
    return "\n\n".join(sections) + "\n"


def _with_keys(text: str, section: str, keys: Mapping[str, Any]) -> str:
    """Return the text of one section with further keys; a list is added to the one that is there."""
    document = tomlkit.parse(f"{text}\n")
    place = (section, "0") if isinstance(document[section], list) else (section,)
    own = _table(document, place)
    values = {key: [*own.get(key, []), *value] if isinstance(value, list) else value for key, value in keys.items()}
    _set(document, {(*place, key): value for key, value in values.items()})
    return tomlkit.dumps(document).strip()


def _header(section: str) -> str:
    """Return the header in the text of a section; nothing of one without, such as comments."""
    found = re.search(r"^\[.*\]$", section, re.MULTILINE)
    return found[0] if found else ""


def _set(document: Any, values: Mapping[tuple[str, ...], Any]) -> None:
    """Put values at their paths in a parsed config."""
    for path in sorted(values, key=lambda path: path[-1] != _USE):
        table, value = _table(document, path[:-1]), values[path]
        if path[-1] == _USE and table.get(_USE, value) != value:
            table.clear()
        table[path[-1]] = _inline(value)


def _table(document: Any, path: tuple[str, ...]) -> Any:
    """Return the table at a path, which is made where it is missing; a number past the last entry adds one.

    Raises:
        ConfigError: there is something else than a table.
    """
    table = document
    for part, following in zip(path, [*path[1:], ""], strict=True):
        if isinstance(table, list):
            if int(part) > len(table):
                raise ConfigError(f"{'.'.join(path)}: there are only {len(table)} [[{path[0]}]] sections")
            if int(part) == len(table):
                table.append(tomlkit.table())
            table = table[int(part)]
        else:
            table = table.setdefault(part, tomlkit.aot() if following.isdecimal() else tomlkit.table())
        if not isinstance(table, list | dict):
            raise ConfigError(f"{'.'.join(path)}: {part!r} is not a table")
    return table


def _inline(value: Any) -> Any:
    """Return a value as it stands behind an equals sign: a table there is in braces."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(item) for key, item in value.items()})
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(_inline(item) for item in value)
        return array
    return value


def write_new(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        ConfigError: it exists, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigError(f"{str(path)!r} exists already and is left as it is; name another file") from None
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error


def _heading(preset: Preset, env_id: str | None) -> Iterable[str]:
    """Yield the comments above a config."""
    about = preset.about
    yield f"# {about.summary}."
    yield f"# Preset {preset.name} of {preset.owner}, written by rlcore {__version__}."
    for reached in about.reached:
        yield f"# Measured with the settings of the preset: {reached}"
    if env_id is not None and about.reached and all(reached.env != env_id for reached in about.reached):
        yield f"# Nothing was measured on {env_id}."


def as_raw(text: str, path: Path) -> RawConfig:
    """Return the config that a text is, as if it had been read from a file."""
    return replace(read(tomllib.loads(text)), path=path)
