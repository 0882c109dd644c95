"""What plugins are published, and what each brings: the one place in which the core knows them.

`catalogue.json` is written by `docs/reference/generate.py`, from the components of each plugin and from the tables
`[tool.rlcore]` of its pyproject.toml.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PREFIX: Final = "rlcore-plugin-"
FILE: Final = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True)
class Published:
    """What a plugin provides, whether it is installed or not.

    Attributes:
        components: names by kind.
        lends: modules of its package by the names that they lend, by the package that lends them on.
        commands: that it adds to the command line, and what each does.
        for_tests: whether its components are for tests, and proposed to nobody who misspelled another.
        of_core: whether configs name its components as those of the core: by their names alone, or as `core:NAME`.
        adapts: packages of other libraries, of which it adapts the parts that scripts hand over.
    """

    components: Mapping[str, list[str]]
    lends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    for_tests: bool = False
    of_core: bool = False
    adapts: list[str] = field(default_factory=list)


def parsed(text: str) -> dict[str, Published]:
    """Return the plugins of a catalogue by name; the distribution of each is `rlcore-plugin-NAME`."""
    return {name: Published(**brings) for name, brings in json.loads(text).items()}


PUBLISHED: Final = parsed(FILE.read_text())
