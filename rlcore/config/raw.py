"""A config as it was read, before any component has looked at it, and where its values come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# read back from a resolved config, where it records what was installed
VERSIONS: Final = "versions"
# what messages call a config that is no file; as a path, it lies in the working directory
GIVEN: Final = Path("the config")
# where values come from that no file says
OVERRIDE: Final = "--set"
DEFAULT: Final = "default"


@dataclass
class RawConfig:
    """A config before any component has looked at it.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: the file; of a mapping `GIVEN`.
        sources: key path to where a value came from, for values that are not from the file.
        extends: the folders of the files that it extends.
        extends_run: whether one of those is the config of a run folder.
        base: the folder that relative paths of the config refer to.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)
    extends: tuple[Path, ...] = ()
    extends_run: bool = False
    base: Path = field(init=False)

    def __post_init__(self) -> None:
        self.base = self.path.resolve().parent

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of its files."""
        return (self.base, *self.extends)

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
        elsewhere = source.startswith("[") or (self.extends and source and source not in (OVERRIDE, str(self.path)))
        return f"{line}; from {source}" if elsewhere else line
