"""Commands that plugins add to the command line, found by their entry points and imported only when they are called."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rlcore.errors import PluginError
from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.discovery import Installed, installed
from rlcore.plugins.host import NO_PLUGINS
from rlcore.plugins.known import not_installed

GROUP: Final = "rlcore.commands"


class Command(Protocol):
    """What the entry point of a command names, such as a module with these two functions."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command; called for the help of the command too."""
        ...

    def run(self, options: argparse.Namespace) -> Any:
        """Do it; return the exit code or a `rlcore.cli.Answer`. An `RlcoreError` becomes its message and exit code."""
        ...


@dataclass(frozen=True)
class PluginCommand:
    """A command that is installed, or published and not installed.

    Attributes:
        name: after `rlcore`; with a dot, that of a command of the core and of an action of it: `plugins.new`.
        claims: the entry points of that name: one, unless distributions contradict each other or none is installed.
    """

    name: str
    claims: tuple[Installed, ...]

    @property
    def summary(self) -> str:
        """One line for the list of commands, without importing anything."""
        publisher, text = _published().get(self.name, ("", ""))
        if not self.claims:
            return f"{text}; of {PREFIX}{publisher}, which is not installed"
        texts = {PREFIX + publisher: text}
        return ", ".join(
            f"{texts.get(claim.distribution) or claim.summary or 'a command'} ({claim.distribution})"
            for claim in self.claims
        )

    def load(self) -> Command:
        """Import what the entry point names.

        Raises:
            PluginError: it is not installed, claimed by two distributions, for another rlcore, or broken.
        """
        if not self.claims:
            blocked = f" ({NO_PLUGINS} is set)" if os.environ.get(NO_PLUGINS) else ""
            need = f"rlcore {self.name.replace('.', ' ')} is provided by"
            raise not_installed(need, PREFIX + _published()[self.name][0], blocked)
        if len(self.claims) > 1:
            owners = " and ".join(str(claim.owner) for claim in self.claims)
            raise PluginError(f"the command {self.name!r} is claimed by {owners}; uninstall one of them")
        command: Command = self.claims[0].load("the command")
        return command


def plugin_commands(core: Iterable[str] = (), of: str = "") -> list[PluginCommand]:
    """Return the commands of plugins in order of name, from metadata alone.

    Args:
        core: names of the commands of the core; a plugin cannot take their place.
        of: a command of the core, for the actions that plugins add to it.
    """
    claims: dict[str, tuple[Installed, ...]] = dict.fromkeys(_published(), ())
    for claim in () if os.environ.get(NO_PLUGINS) else installed(GROUP):
        claims[claim.name] = (*claims.get(claim.name, ()), claim)
    names = [name for name in sorted(claims) if name.rpartition(".")[0] == of and name.rpartition(".")[2] not in core]
    return [PluginCommand(name, claims[name]) for name in names]


def _published() -> dict[str, tuple[str, str]]:
    """Return the plugin of each published command, and what the command does."""
    return {
        command: (plugin, text)
        for plugin, published in PUBLISHED.items()
        for command, text in published.commands.items()
    }
