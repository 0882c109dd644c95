"""`rlcore plugins`: what is installed, by its metadata alone; the actions that import plugins are of a plugin."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rlcore.cli.answers import Answer, add_json
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.plugins.discovery import installed, version_conflict


@dataclass(frozen=True)
class ListedPlugin:
    """An installed plugin.

    Attributes:
        name: as configs and `rlcore plugins show` name it.
        distribution: whose it is.
        version: of the distribution.
        requires_rlcore: which versions of rlcore it is for; empty where it does not say.
        problem: why it is refused; null where it is not.
    """

    name: str
    distribution: str
    version: str
    requires_rlcore: str
    problem: str | None


@dataclass(frozen=True)
class Plugins:
    """What is installed.

    Attributes:
        plugins: by name.
    """

    plugins: list[ListedPlugin]


def add_arguments(parser: Parser) -> None:
    """Add what the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list what is installed, from metadata alone")
    add_json(listing, Plugins)
    add_plugin_commands(actions, "plugins")


def run(options: argparse.Namespace) -> Answer:
    """List the plugins; the other actions are of plugins."""
    plugins = [
        ListedPlugin(plugin.name, plugin.distribution, plugin.version, plugin.requires_rlcore, version_conflict(plugin))
        for plugin in installed()
    ]
    width = max(len(plugin.name) for plugin in plugins)
    lines = [
        f"{plugin.name:<{width}}  {plugin.distribution} {plugin.version}"
        + (f"  refused: {plugin.problem}" if plugin.problem else "")
        for plugin in plugins
    ]
    return Answer(Plugins(plugins), "\n".join(lines) + "\n")
