"""Reading a config: TOML text or a mapping, what it extends, and overrides.

What the components' sections may contain is each component's schema; see `sections.py`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.config.extending import EXTENDS, Layer, extended, with_absolute_paths
from rlcore.config.overrides import SOURCE, override
from rlcore.errors import ConfigError
from rlcore.plugins.component import COMPONENT_SECTIONS

CKPT_BACKEND: Final = "CKPT_BACKEND"
BACKEND_ALIASES: Final = {"memmap": "torch"}
# read back from a resolved config, where it records what was installed
VERSIONS: Final = "versions"
# what messages call a config that is no file; as a path, it lies in the working directory
GIVEN: Final = Path("the config")


@dataclass
class RawConfig:
    """A config before any component has looked at it.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: the file; of a mapping `GIVEN`.
        sources: key path to where a value came from, for values that are not from the file.
        extends: whether it extends another config.
        extends_run: whether one of those is the config of a run folder.
        base: the folder that relative paths of the config refer to.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)
    extends: bool = False
    extends_run: bool = False
    base: Path = field(init=False)

    def __post_init__(self) -> None:
        self.base = self.path.resolve().parent

    @property
    def of_a_run(self) -> bool:
        """Whether this is the config of a run folder, which says everything."""
        return VERSIONS in self.values

    @property
    def names_code_of_a_run(self) -> bool:
        """Whether code is named by the config of a run folder, which may be somebody else's."""
        return self.of_a_run or self.extends_run

    def with_source(self, line: str, label: str, place: str) -> str:
        """Return a line about a key of a section, with the place that its value is from where that is another file.

        Args:
            line: begins with `[label] key:`.
            label: of the section in messages.
            place: of the section in `sources`.
        """
        key = line.removeprefix(f"[{label}] ").partition(":")[0].partition(".")[0]
        source = self.sources.get(f"{place}.{key}", "")
        elsewhere = source.startswith("[") or (self.extends and source and source not in (SOURCE, str(self.path)))
        return f"{line}; from {source}" if elsewhere else line


def backend_of_environment(environment: Mapping[str, str] | None = None) -> str:
    """Return the checkpoint back end that the environment variable `CKPT_BACKEND` names, or an empty string.

    `memmap`, which is TorchRL's name for files that are mapped when they are read, stands for `torch`, which does so.
    """
    named = (os.environ if environment is None else environment).get(CKPT_BACKEND, "")
    return BACKEND_ALIASES.get(named, named)


def read(
    config: Path | Mapping[str, Any], overrides: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> RawConfig:
    """Read a config, with what it extends, and apply overrides.

    Args:
        config: a TOML file; or what one would hold, whose relative paths are relative to the working directory.
        overrides: `"section.key=value"`, as after `--set`; the value is TOML, or else a string.
        environment: where `CKPT_BACKEND` is looked up; default: the process's environment.

    Raises:
        ConfigError: no such file, not TOML, an override that does not fit, a section that is not a table.
    """
    raw = _layered(_plain(config), GIVEN, []) if isinstance(config, Mapping) else _layered(_parse(config), config, [])
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
    own = Layer(values, path)
    if extends is None:
        return RawConfig(values, path)
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
    of_a_run = base.names_code_of_a_run
    base.values.pop(VERSIONS, None)
    layer = with_absolute_paths(Layer(base.values, below, base.sources), base.base)
    both = extended(layer, own)
    return RawConfig(both.values, path, both.sources, True, of_a_run)


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


def _normalise(values: dict[str, Any], path: Path) -> None:
    """Make repeated sections lists, refuse what is not a table."""
    for section, value in values.items():
        repeated = COMPONENT_SECTIONS.get(section, ("", False))[1]
        tables = value if isinstance(value, list) and repeated else [value]
        if not all(isinstance(table, dict) for table in tables):
            form = f"[[{section}]]" if repeated else f"[{section}]"
            raise ConfigError(f"{path}: {section} must be a table: write {form}, then its keys below")
        if any(isinstance(table.get(EXTENDS), str) for table in tables):
            raise ConfigError(f"{path}: {EXTENDS} stands in [{section}]; write it at the top, before the first section")
        if repeated:
            values[section] = tables
