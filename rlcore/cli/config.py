"""`rlcore config`: check a config, and show it whole."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from rlcore.cli.answers import Answer, add_json
from rlcore.cli.arguments import override_arguments
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.config.file import read
from rlcore.config.observers import add_observers
from rlcore.config.policies import tables
from rlcore.config.sections import Config, validate
from rlcore.config.trust import UntrustedError


@dataclass(frozen=True)
class CheckedConfig:
    """A config without problems; those of others are in the error.

    Attributes:
        file: the config.
        left_out: what was not looked at, as its code was not written here.
    """

    file: str
    left_out: list[str]


@dataclass(frozen=True)
class ShownConfig:
    """A config with all defaults and versions.

    Attributes:
        config: section to keys, or to a list of them for sections that can be repeated.
    """

    config: dict[str, Any]


def add_arguments(parser: Parser) -> None:
    """Add what the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, data, text in (
        ("check", CheckedConfig, "report every problem of a config"),
        ("show", ShownConfig, "print the config with all defaults and versions"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("config", metavar="CONFIG", help="a TOML file")
        override_arguments(action)
        add_json(action, data)
    add_plugin_commands(actions, "config")


def run(options: argparse.Namespace) -> Answer:
    """Check the config, with its parts built in memory, or show it."""
    if options.action == "show":
        config = read_as_it_is(options, validate)
        resolved = config.raw.values if any(_left_out(config)) else config.resolved()
        return Answer(ShownConfig(resolved), tomli_w.dumps(resolved))
    from rlcore.run.checking import try_out, validated

    config = read_as_it_is(options, validated)
    left_out = list(_left_out(config))
    if not left_out:
        try_out(config)
    besides = f"; not checked: {'; '.join(left_out)}" if left_out else ""
    return Answer(CheckedConfig(options.config, left_out), f"{options.config}: no problems found{besides}\n")


def read_as_it_is(options: argparse.Namespace, validated: Callable[..., Config]) -> Config:
    """Return the config that a command names; without the code that it names, where that may not run here."""
    raw = read(Path(options.config), options.set, trust=options.trust)
    add_observers(raw, options.disable)
    try:
        return validated(raw, options.enable, options.disable)
    except UntrustedError:
        return validate(raw, options.enable, options.disable, import_files=False)


def _left_out(config: Config) -> Iterator[str]:
    """Yield the sections whose code was not imported, since a run folder names it."""
    for name, sections in config.sections.items():
        number = len(tables(config.raw, name)) - len(sections)
        if number:
            yield f"{number} [{name}] of the files {', '.join(config.plugins.files)}, which --trust imports"
