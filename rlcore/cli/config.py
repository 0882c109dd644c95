"""`rlcore config`: check, show and explain a config, and the JSON schema of all configs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import tomli_w
from pydantic import BaseModel

from rlcore.cli.arguments import override_arguments
from rlcore.config.file import read
from rlcore.config.observers import add_observers
from rlcore.config.policies import tables
from rlcore.config.raw import RawConfig
from rlcore.config.schema import config_schema
from rlcore.config.sections import Config, validate
from rlcore.config.trust import UntrustedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("check", "report every problem of a config"),
        ("show", "print the config with all defaults and versions"),
        ("explain", "print every key: its value, where the value comes from, what it means"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("config", metavar="CONFIG", help="a TOML file")
        override_arguments(action)
    actions.add_parser("schema", help="print a JSON schema of everything installed, for editors")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    if options.action == "schema":
        print(json.dumps(config_schema(), indent=1))
        return 0
    raw = read(Path(options.config), options.set, trust=options.trust)
    add_observers(raw, options.disable)
    try:
        if options.action == "check":
            return _check(raw, options)
        config = validate(raw, options.enable, options.disable)
    except UntrustedError:
        config = validate(raw, options.enable, options.disable, import_files=False)
    left_out = list(_left_out(config))
    if options.action == "check":
        print(f"{options.config}: no problems found" + (f"; not checked: {'; '.join(left_out)}" if left_out else ""))
    elif options.action == "show":
        print(tomli_w.dumps(raw.values if left_out else config.resolved()), end="")
    else:
        for line in explain(config):
            print(line)
    return 0


def _check(raw: RawConfig, options: argparse.Namespace) -> int:
    """Say what is wrong with a config and with the parts that it names, which are built in memory."""
    from rlcore.run.checking import try_out, validated

    try_out(validated(raw, options.enable, options.disable))
    print(f"{options.config}: no problems found")
    return 0


def _left_out(config: Config) -> Iterator[str]:
    """Yield the sections whose code was not imported, since a run folder names it."""
    for name, sections in config.sections.items():
        number = len(tables(config.raw, name)) - len(sections)
        if number:
            yield f"{number} [{name}] of the files {', '.join(config.plugins.files)}, which --trust imports"


def explain(config: Config) -> Iterator[str]:
    """Yield a line per key: its value, where the value comes from, what it means."""
    for name, values in config.core().items():
        yield f"[{name}]"
        yield from _keys(values, name, config.raw)
    for name, sections in config.sections.items():
        for section in sections:
            yield f"[{section.label}] {section.provided}  ({_source_of_use(config.raw, section.label)})"
            if name == "checkpoint":
                yield from _keys(config.checkpoint, name, config.raw)
            yield from _keys(section.config, section.label, config.raw)


def _keys(values: BaseModel, section: str, raw: RawConfig) -> Iterator[str]:
    value_of = dict(iter(values))  # the keys of a section may be called `keys`
    for key, field in type(values).model_fields.items():
        source = _source(raw, section, key, is_said=key in values.model_fields_set)
        yield f"  {key} = {value_of[key]!r}  ({source})  {field.description or ''}".rstrip()


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
