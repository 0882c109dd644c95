"""`rlcore plot`: the curves of one or several runs on one figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore_plugin_reports.plotting import plot_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plot`."""
    parser.description = "Plot the curves of one or several runs on one figure."
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders; those that differ in the seed are one line"
    )
    parser.add_argument("--output", metavar="FILE", help="default: curves.png in the first run's folder")


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print where it is."""
    runs = [Path(name) for name in options.runs]
    output = Path(options.output) if options.output else runs[0] / "curves.png"
    print(plot_runs(runs, output))
    return 0
