"""`rlcore serve`: a console for the browser over a folder of runs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError
from rlcore.run_folder import CONFIG_FILE


@dataclass(frozen=True)
class Served:
    """What was served, until Ctrl-C.

    Attributes:
        folder: of the runs.
        url: with the token; said at once too, before the server answers.
        waiting: commands that waited in line at the end.
    """

    folder: str
    url: str
    waiting: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore serve`."""
    parser.description = (
        "Serve a console for the browsers of this machine over a folder of runs: live curves, comparisons, and "
        "buttons that stop, resume and fork runs."
    )
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="runs", help="where runs are; default: runs")
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="default: 0, any that is free")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen; anything but 127.0.0.1 needs --allow-remote",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="let other machines ask, by a connection that others on the way can read",
    )
    add_json(parser, Served)


def run(options: argparse.Namespace) -> Answer:
    """Serve until Ctrl-C; trainings that were begun go on."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise ConfigError(f"{options.folder!r} is not a folder; runs are in [run] folder, by default 'runs'")
    if (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{options.folder!r} is one run; name the folder in which it and others are")
    from rlcore_plugin_console.server import LOOPBACK, Server

    remote = options.host != LOOPBACK
    if remote and not options.allow_remote:
        raise ConfigError(
            f"--host {options.host} lets other machines train and delete here; add --allow-remote if that is meant, or "
            "forward the port: ssh -L PORT:127.0.0.1:PORT HOST"
        )
    if options.allow_remote and not remote:
        raise ConfigError("--allow-remote lets nobody in while the server listens at 127.0.0.1; add --host 0.0.0.0")
    with Server(folder.resolve(), Path.cwd(), options.port, options.host, remote) as server:
        if remote:
            print(
                "warning: whoever reads the network can read the token, and with it train and delete here",
                file=sys.stderr,
            )
        print(f"{server.url}\nshows the runs in {options.folder}; Ctrl-C ends it, and trainings go on", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")
        waiting = list(server.site.jobs.waiting())
    return Answer(
        Served(options.folder, server.url, waiting), "".join(f"was waiting in line: {command}\n" for command in waiting)
    )


def _port(text: str) -> int:
    """Return a port; 0 for any that is free."""
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return value
