"""`rlcore report`: one HTML page about one or several runs, as a file or from a server that follows them."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.errors import ConfigError
from rlcore.reports.html.page import write_report


def run(options: argparse.Namespace) -> int:
    """Write the page and print where it is; or serve it until Ctrl-C."""
    runs = [Path(name) for name in options.runs]
    if options.watch:
        if options.output:
            raise ConfigError("--watch serves the page and writes no file; leave out --output")
        return _watch(runs, options.port or 0)
    if options.port is not None:
        raise ConfigError("--port is the port of --watch")
    output = Path(options.output) if options.output else runs[0] / "report.html"
    print(write_report(runs, output))
    return 0


def _watch(runs: list[Path], port: int) -> int:
    from rlcore.reports.html.server import Server

    with Server(runs, port) as server:
        print(f"{server.url} shows the runs as they go on; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")
    return 0
