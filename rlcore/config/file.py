"""Reading a config: TOML text, overrides and the sections that are the core's own.

What the components' sections may contain is each component's schema; see `sections.py`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.plugins.component import COMPONENT_SECTIONS

CKPT_BACKEND: Final = "CKPT_BACKEND"
BACKEND_ALIASES: Final = {"memmap": "torch"}
# read back from a resolved config, where it records what was installed
VERSIONS: Final = "versions"


@dataclass
class RawConfig:
    """A config before any component has looked at it.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: the file.
        sources: key path to where a value came from, for values that are not from the file.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def of_a_run(self) -> bool:
        """Whether this is the config of a run folder, which may be somebody else's."""
        return VERSIONS in self.values

    @property
    def base(self) -> Path:
        """The folder that relative paths of the config refer to."""
        return self.path.resolve().parent


def backend_of_environment(environment: Mapping[str, str] | None = None) -> str:
    """Return the checkpoint back end that the environment variable `CKPT_BACKEND` names, or an empty string.

    `memmap`, which is TorchRL's name for files that are mapped when they are read, stands for `torch`, which does so.
    """
    named = (os.environ if environment is None else environment).get(CKPT_BACKEND, "")
    return BACKEND_ALIASES.get(named, named)


def read(path: Path, overrides: Iterable[str] = (), environment: Mapping[str, str] | None = None) -> RawConfig:
    """Read a config file and apply overrides.

    Args:
        path: a TOML file.
        overrides: `"section.key=value"`, as after `--set`; the value is TOML, or else a string.
        environment: where `CKPT_BACKEND` is looked up; default: the process's environment.

    Raises:
        ConfigError: no such file, not TOML, an override that does not fit, a section that is not a table.
    """
    raw = RawConfig(_parse(path), path)
    _normalise(raw)
    for override in overrides:
        _override(raw, override)
    backend = backend_of_environment(environment)
    if backend:
        raw.values.setdefault("checkpoint", {})["use"] = backend
        raw.sources["checkpoint.use"] = f"environment variable {CKPT_BACKEND}"
    return raw


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except FileNotFoundError:
        raise ConfigError(f"config file {str(path)!r} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"config {str(path)!r} is a folder; name a TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of TOML, or an integer of thousands of digits
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None


def _normalise(raw: RawConfig) -> None:
    """Make repeated sections lists, refuse what is not a table."""
    for section, value in raw.values.items():
        repeated = COMPONENT_SECTIONS.get(section, ("", False))[1]
        tables = value if isinstance(value, list) and repeated else [value]
        if not all(isinstance(table, dict) for table in tables):
            form = f"[[{section}]]" if repeated else f"[{section}]"
            raise ConfigError(f"{raw.path}: {section} must be a table: write {form}, then its keys below")
        if repeated:
            raw.values[section] = tables


def _override(raw: RawConfig, text: str) -> None:
    key, equals, value_text = text.partition("=")
    path = key.strip().split(".")
    if not equals or len(path) < 2 or not all(path):
        raise ConfigError(f"override {text!r} must read section.key=value")
    try:
        value = tomllib.loads(f"value = {value_text}")["value"]
    except ValueError:
        value = value_text
    target, keys = raw.values, path
    if COMPONENT_SECTIONS.get(path[0], ("", False))[1]:
        if not path[1].isdecimal():
            path.insert(1, "0")
        target, keys = _repeated_table(raw, path[0], int(path[1]), text), path[2:]
    if not keys:
        raise ConfigError(f"override {text!r} must read section.number.key=value")
    for part in keys[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise ConfigError(f"override {text!r}: {part!r} is not a table")
    target[keys[-1]] = value
    raw.sources[".".join(path)] = "--set"


def _repeated_table(raw: RawConfig, section: str, index: int, text: str) -> dict[str, Any]:
    """Return table number `index` of a repeated section; the number after the last one makes a new table."""
    tables = raw.values.setdefault(section, [])
    if index > len(tables):
        raise ConfigError(f"override {text!r}: there are only {len(tables)} [[{section}]] sections")
    if index == len(tables):
        tables.append({})
    return tables[index]  # type: ignore[no-any-return]
