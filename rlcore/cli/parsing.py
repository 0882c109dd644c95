"""The parser of the command line: flags by their full name, and commands of plugins that wait until they are called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any


class Parser(argparse.ArgumentParser):
    """Takes flags by their full name only, so that a flag added later changes no command that worked.

    Args:
        fill: adds the arguments when they are first needed; what imports a plugin waits until its command is called.
        arguments: as for any parser.
    """

    def __init__(self, fill: Callable[[argparse.ArgumentParser], None] | None = None, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)
        self._fill = fill

    def complete(self) -> None:
        """Add the arguments that wait until they are needed."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with all arguments."""
        self.complete()
        return super().parse_known_args(args, namespace)


def add_plugin_commands(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of plugins, which are imported when they are called."""
    from rlcore.plugins.commands import PluginCommand, plugin_commands

    def fill(found: PluginCommand, parser: argparse.ArgumentParser) -> None:
        command = found.load()
        parser.set_defaults(of_plugin=command)
        command.add_arguments(parser)

    for found in plugin_commands(commands.choices):
        commands.add_parser(found.name, help=found.summary, fill=partial(fill, found))
