"""A config as it was read, before any component has looked at it, and where its values come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError

# read back from a resolved config, where it records what was installed
VERSIONS: Final = "versions"
# what messages call a config that is no file; as a path, it lies in the working directory
GIVEN: Final = Path("the config")
# where values come from that no file says
OVERRIDE: Final = "--set"
DEFAULT: Final = "default"
# what lies beside the config of a run folder; the first is written with it
_OF_A_RUN: Final = ("run_id", "checkpoints")


@dataclass(frozen=True)
class ConfigFile:
    """A file that a config was read from, as it was before overrides.

    Attributes:
        path: of the file.
        text: its values as JSON, without the versions; equal for a config and for what a manifest records of it.
        of_a_run: whether it is the config of a run folder, or was saved with a checkpoint or an agent.
    """

    path: Path
    text: str
    of_a_run: bool

    @classmethod
    def of(cls, path: Path, values: Mapping[str, Any], of_a_run: bool = False) -> ConfigFile:
        """Return the file with these values."""
        beside = any((path.parent / name).exists() for name in _OF_A_RUN)
        return cls(path, text_of(values), of_a_run or VERSIONS in values or beside)

    @property
    def folder(self) -> Path:
        """The folder in which it lies."""
        return self.path.resolve().parent


def text_of(values: Mapping[str, Any]) -> str:
    """Return the text that says what a config says, without the versions.

    Raises:
        ConfigError: it is nested too deeply.
    """
    kept = {section: value for section, value in values.items() if section != VERSIONS}
    try:
        return json.dumps(kept, sort_keys=True, default=str)
    except RecursionError:
        raise ConfigError("the config is nested too deeply") from None


@dataclass
class RawConfig:
    """A config before any component has looked at it.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: the file; of a mapping `GIVEN`.
        sources: key path to where a value came from, for values that are not from the file.
        files: the file and those that it extends; none of what a program holds.
        trusted: whether its code may run; until that is known, whether somebody said so.
        base: the folder that relative paths of the config refer to.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()
    trusted: bool = False
    base: Path = field(init=False)

    def __post_init__(self) -> None:
        self.base = self.path.resolve().parent

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of its files."""
        return (self.base, *(file.folder for file in self.files if file.path != self.path))

    @property
    def of_a_run(self) -> bool:
        """Whether this is the config of a run folder, which says everything."""
        return VERSIONS in self.values

    def with_source(self, line: str, label: str, place: str) -> str:
        """Return a line about a key of a section, with the place that its value is from where that is another file.

        Args:
            line: begins with `[label] key:`.
            label: of the section in messages.
            place: of the section in `sources`.
        """
        key = line.removeprefix(f"[{label}] ").partition(":")[0].partition(".")[0]
        source = self.sources.get(f"{place}.{key}", "")
        extends = len(self.folders) > 1
        elsewhere = source.startswith("[") or (extends and source and source not in (OVERRIDE, str(self.path)))
        return f"{line}; from {source}" if elsewhere else line
