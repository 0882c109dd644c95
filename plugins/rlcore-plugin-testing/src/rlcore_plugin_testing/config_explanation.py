"""`rlcore config explain`: every key of a config, its value, where the value comes from, and what it means."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rlcore.cli import Answer, add_json
from rlcore.cli.arguments import override_arguments
from rlcore.cli.config import read_as_it_is
from rlcore.config.policies import tables
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config, validate


@dataclass(frozen=True)
class ExplainedKey:
    """A key of a section.

    Attributes:
        key: its name.
        value: what the config says, or the default.
        source: where the value is from, such as a file, `--set` or `default`.
        meaning: in a sentence.
    """

    key: str
    value: Any
    source: str
    meaning: str

    def __str__(self) -> str:
        return f"  {self.key} = {self.value!r}  ({self.source})  {self.meaning}".rstrip()


@dataclass(frozen=True)
class ExplainedSection:
    """A section of a config.

    Attributes:
        section: its name; with a number or a name behind a dot where there are several.
        component: what is used, with its owner; empty in a section of the core.
        source: where it is said which component that is.
        keys: in the order of their declaration.
    """

    section: str
    component: str
    source: str
    keys: list[ExplainedKey]

    def __str__(self) -> str:
        head = f"[{self.section}] {self.component}  ({self.source})" if self.component else f"[{self.section}]"
        return "\n".join([head, *map(str, self.keys)])


@dataclass(frozen=True)
class ExplainedConfig:
    """Every key of a config.

    Attributes:
        sections: those of the core, then those of components.
    """

    sections: list[ExplainedSection]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore config explain`."""
    parser.description = "Print every key of a config: its value, where the value comes from, what it means."
    parser.add_argument("config", metavar="CONFIG", help="a TOML file")
    override_arguments(parser)
    add_json(parser, ExplainedConfig)


def run(options: argparse.Namespace) -> Answer:
    """Read the config, and explain it."""
    sections = list(explain(read_as_it_is(options, validate)))
    return Answer(ExplainedConfig(sections), "".join(f"{section}\n" for section in sections))


def explain(config: Config) -> Iterator[ExplainedSection]:
    """Yield each section, with the value of every key, where the value comes from, and what it means."""
    for name, values in config.core().items():
        yield ExplainedSection(name, "", "", list(_keys(values, name, config.raw)))
    for name, sections in config.sections.items():
        for section in sections:
            keys = [*_keys(config.checkpoint, name, config.raw)] if name == "checkpoint" else []
            keys += _keys(section.config, section.label, config.raw)
            source = _source_of_use(config.raw, section.label)
            yield ExplainedSection(section.label, str(section.provided), source, keys)


def _keys(values: BaseModel, section: str, raw: RawConfig) -> Iterator[ExplainedKey]:
    value_of = dict(iter(values))  # the keys of a section may be called `keys`
    for key, field in type(values).model_fields.items():
        source = _source(raw, section, key, is_said=key in values.model_fields_set)
        yield ExplainedKey(key, value_of[key], source, field.description or "")


def _source_of_use(raw: RawConfig, label: str) -> str:
    """Return where it is said which component a section is of."""
    table = next(table for table in tables(raw, label.partition(".")[0]) if table.label == label)
    return _source(raw, label, "use", is_said="use" in table.keys)


def _source(raw: RawConfig, section: str, key: str, is_said: bool) -> str:
    first, _, index = section.partition(".")
    paths = (f"{section}.{key}", f"{first}.{index or 0}.{key}")
    whole = [raw.sources[path] for path in paths if path in raw.sources]
    within = [source for path in paths for place, source in raw.sources.items() if place.startswith(f"{path}.")]
    return " and ".join(dict.fromkeys([*(whole or [str(raw.path) if is_said else "default"]), *within]))
