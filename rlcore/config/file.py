"""Reading a config: TOML text or a mapping, what it extends, and overrides.

What the components' sections may contain is each component's schema; see `sections.py`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.config.extending import EXTENDS, Layer, extended, with_absolute_paths
from rlcore.config.overrides import override
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import GIVEN, VERSIONS, ConfigFile, RawConfig
from rlcore.errors import ConfigError, MissingPluginError
from rlcore.plugins.component import is_repeated
from rlcore.plugins.known import lend

CKPT_BACKEND: Final = "CKPT_BACKEND"
BACKEND_ALIASES: Final = {"memmap": "torch"}


def backend_of_environment(environment: Mapping[str, str] | None = None) -> str:
    """Return the checkpoint back end that the environment variable `CKPT_BACKEND` names, or an empty string.

    `memmap`, which is TorchRL's name for files that are mapped when they are read, stands for `torch`, which does so.
    """
    named = (os.environ if environment is None else environment).get(CKPT_BACKEND, "")
    return BACKEND_ALIASES.get(named, named)


def read(
    config: Path | Mapping[str, Any],
    overrides: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    trust: bool = False,
) -> RawConfig:
    """Read a config, with what it extends, and apply overrides.

    Args:
        config: a TOML file; or what one would hold, whose relative paths are relative to the working directory.
        overrides: `"section.key=value"`, as after `--set`; the value is TOML, or else a string.
        environment: where `CKPT_BACKEND` is looked up; default: the process's environment.
        trust: run the code that it names, whoever wrote it.

    Raises:
        ConfigError: no such file, not TOML, an override that does not fit, a section that is not a table.
    """
    raw = _layered(_plain(config), GIVEN, []) if isinstance(config, Mapping) else _layered(_parse(config), config, [])
    raw.trusted = trust
    for text in overrides:
        override(raw, text)
    backend = backend_of_environment(environment)
    if backend:
        raw.values.setdefault("checkpoint", {})["use"] = backend
        raw.sources["checkpoint.use"] = f"environment variable {CKPT_BACKEND}"
    return raw


def _layered(values: dict[str, Any], path: Path, extending: list[Path]) -> RawConfig:
    """Return a config with what it extends; `extending` are the files that extend it."""
    extends = values.pop(EXTENDS, None)
    _normalise(values, path)
    top = Layer(values, path)
    files = () if path is GIVEN else (ConfigFile.of(path, values),)
    if extends is None:
        return RawConfig(values, path, files=files)
    if not isinstance(extends, str):
        raise ConfigError(f"{path}: {EXTENDS} must name a config file, not {extends!r}")
    here = path.resolve()
    if here in extending:
        circle = " extends ".join(str(file) for file in [*extending[extending.index(here) :], here])
        raise ConfigError(f"{path}: {EXTENDS} goes round in a circle: {circle}")
    below = path.parent / extends
    try:
        values_below = _parse(below)
    except ConfigError as error:
        raise ConfigError(f"{path}: {EXTENDS}: {error}") from None
    base = _layered(values_below, below, [*extending, here])
    base.values.pop(VERSIONS, None)
    layer = with_absolute_paths(Layer(base.values, below, base.sources), base.base)
    both = extended(layer, top)
    return RawConfig(both.values, path, both.sources, (*files, *base.files))


def _plain(value: Any) -> Any:
    """Return mappings and sequences as TOML would give them, so that nothing is changed that others hold."""
    if isinstance(value, Mapping):
        odd = [key for key in value if not isinstance(key, str)]
        if odd:
            raise ConfigError(f"{GIVEN}: the key {odd[0]!r} is not text")
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except FileNotFoundError:
        raise ConfigError(f"config file {str(path)!r} does not exist{_as_example(path)}") from None
    except IsADirectoryError:
        raise ConfigError(f"config {str(path)!r} is a folder; name a TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of TOML, or an integer of thousands of digits
        raise ConfigProblems(path, [f"not valid TOML: {error}"]) from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None


def _as_example(path: Path) -> str:
    """Return how to write a file that is one of the examples."""
    try:
        is_example = lend("rlcore.config", "is_example")(path.name)
    except MissingPluginError:
        return ""
    return f"; rlcore init --example {path.stem} writes it here" if is_example else ""


def _normalise(values: dict[str, Any], path: Path) -> None:
    """Make repeated sections lists, refuse what is not a table."""
    for section, value in values.items():
        repeated = is_repeated(section)
        tables = value if isinstance(value, list) and repeated else [value]
        if not all(isinstance(table, dict) for table in tables):
            form = f"[[{section}]]" if repeated else f"[{section}]"
            raise ConfigError(f"{path}: {section} must be a table: write {form}, then its keys below")
        if any(isinstance(table.get(EXTENDS), str) for table in tables):
            raise ConfigError(f"{path}: {EXTENDS} stands in [{section}]; write it at the top, before the first section")
        if repeated:
            values[section] = tables
