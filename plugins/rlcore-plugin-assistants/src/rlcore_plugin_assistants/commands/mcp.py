"""`rlcore mcp`: a server on stdio, by which an assistant trains and compares."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.errors import ConfigError, MissingPluginError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore mcp`."""
    parser.description = "Serve the Model Context Protocol on stdio: configs, runs and training in one folder."
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="where configs and runs are; default: the current one"
    )


def run(options: argparse.Namespace) -> int:
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
    try:
        server(workshop).run("stdio")
    finally:
        workshop.close()
    return 0
