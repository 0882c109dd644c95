"""The parser of the command line: flags by their full name, and commands of plugins that wait until they are called."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from rlcore.errors import ConfigError, did_you_mean


class UsageError(ConfigError):
    """A command line that asks for JSON cannot be parsed."""


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Gives each command its sentence in the list as its description."""

    def add_parser(self, name: str, **arguments: Any) -> Any:
        """Add a command."""
        text = arguments["help"].replace("%%", "%")
        return super().add_parser(name, **{"description": f"{text[0].upper()}{text[1:]}.", **arguments})


class Parser(argparse.ArgumentParser):
    """Takes flags by their full name only, so that a flag added later changes no command that worked.

    Args:
        fill: adds the arguments when they are first needed; what imports a plugin waits until its command is called.
        arguments: as for any parser.
    """

    def __init__(self, fill: Callable[[Parser], None] | None = None, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)
        self.register("action", "parsers", _Commands)
        self._fill = fill
        self._answers_json = False

    def complete(self) -> None:
        """Add the arguments that wait until they are needed."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def error(self, message: str) -> NoReturn:
        """End the program with a message, which is raised where the answer is JSON.

        Raises:
            UsageError: with the message.
        """
        if self._answers_json:
            raise UsageError(f"{self.prog}: {message}")
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, and name the nearest."""
        choices = () if action.choices is None else list(action.choices)
        guess = did_you_mean(str(value), map(str, choices))
        if guess and value not in choices:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{guess}")
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with all arguments; one that there is not ends the program, which names the nearest."""
        self._answers_json = "--json" in args
        self.complete()
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
            guesses = [did_you_mean(flag, self._option_string_actions) for flag in flags]
            if "--set" in self._option_string_actions and any(re.match(r"[a-z_]+\.\S+=", each) for each in unknown):
                guesses.append("; a key of the config is set by --set KEY=VALUE")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(guesses)}")
        return options, unknown


def add_plugin_commands(commands: argparse._SubParsersAction[Parser], of: str = "") -> None:
    """Add the commands of plugins, or their actions of a command of the core, which are imported when they are called.

    Args:
        commands: to add to.
        of: the command of the core.
    """
    from rlcore.plugins.commands import PluginCommand, plugin_commands

    def fill(command: PluginCommand, parser: argparse.ArgumentParser) -> None:
        module = command.load()
        parser.set_defaults(of_plugin=module)
        module.add_arguments(parser)

    for command in plugin_commands(commands.choices, of):
        commands.add_parser(
            command.name.rpartition(".")[2], help=command.summary.replace("%", "%%"), fill=partial(fill, command)
        )
