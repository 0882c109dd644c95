"""`rlcore mcp`: a server on stdio, by which an assistant trains and compares."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError, MissingPluginError


@dataclass(frozen=True)
class Tool:
    """A tool of the server.

    Attributes:
        name: by which it is called.
        description: what it does.
        arguments: their JSON schema.
    """

    name: str
    description: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Tools:
    """What the server offers; with `--json` nothing is served, as the protocol has the standard output.

    Attributes:
        folder: in which the tools work.
        tools: in the order in which the server lists them.
    """

    folder: str
    tools: list[Tool]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore mcp`."""
    parser.description = "Serve the Model Context Protocol on stdio: configs, runs and training in one folder."
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="where configs and runs are; default: the current one"
    )
    add_json(parser, Tools)


def run(options: argparse.Namespace) -> int | Answer:
    """Serve until the client closes the pipe, and stop what still trains, with its state saved."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is not a folder; rlcore mcp serves one that is there")
    try:
        from rlcore_plugin_assistants.server import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise MissingPluginError(
            "rlcore mcp needs the protocol's package, which is not installed here: "
            'pip install "rlcore-plugin-assistants[mcp]"'
        ) from error
    from rlcore_plugin_assistants.workshop import Workshop

    workshop = Workshop(folder.resolve())
    if options.json:
        tools = asyncio.run(server(workshop).list_tools())
        described = [Tool(tool.name, tool.description or "", tool.input_schema) for tool in tools]
        return Answer(Tools(str(folder), described))
    try:
        server(workshop).run("stdio")
    finally:
        workshop.close()
    return 0
