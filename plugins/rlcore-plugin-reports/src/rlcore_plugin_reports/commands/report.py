"""`rlcore report`: one HTML page about one or several runs, as a file or from a server that follows them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError
from rlcore_plugin_reports.commands.arguments import port
from rlcore_plugin_reports.html.page import write_report


@dataclass(frozen=True)
class Report:
    """A page about runs.

    Attributes:
        file: where it is; null with `--watch`.
        url: where it was served until Ctrl-C, which is on stderr from the start; null without `--watch`.
    """

    file: str | None
    url: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore report`."""
    parser.description = "Write one HTML page about one or several runs, with nothing outside of it."
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders; those that differ in the seed are one line"
    )
    parser.add_argument("--output", metavar="FILE", help="default: report.html in the first run's folder")
    parser.add_argument(
        "--watch", action="store_true", help="serve the page on this machine, and follow the runs until Ctrl-C"
    )
    parser.add_argument("--port", type=port, metavar="N", help="of --watch; default: 0, any that is free")
    add_json(parser, Report)


def run(options: argparse.Namespace) -> Answer:
    """Write the page, and answer where it is; or serve it until Ctrl-C."""
    runs = [Path(name) for name in options.runs]
    if options.watch:
        if options.output:
            raise ConfigError("--watch serves the page and writes no file; leave out --output")
        return _watch(runs, options.port or 0)
    if options.port is not None:
        raise ConfigError("--port is the port of --watch")
    output = Path(options.output) if options.output else runs[0] / "report.html"
    file = str(write_report(runs, output))
    return Answer(Report(file, None), f"{file}\n")


def _watch(runs: list[Path], number: int) -> Answer:
    from rlcore_plugin_reports.html.server import Server

    with Server(runs, number) as server:
        print(f"{server.url} shows the runs as they go on; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")
        return Answer(Report(None, server.url))
