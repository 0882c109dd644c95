"""`rlcore plot`: the curves of one or several runs on one figure."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rlcore.cli import Answer, add_json
from rlcore_plugin_reports.plotting import plot_runs


@dataclass(frozen=True)
class Plotted:
    """The curves of runs, as a picture.

    Attributes:
        file: where it is.
    """

    file: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plot`."""
    parser.description = "Plot the curves of one or several runs on one figure."
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders; those that differ in the seed are one line"
    )
    parser.add_argument("--output", metavar="FILE", help="default: curves.png in the first run's folder")
    add_json(parser, Plotted)


def run(options: argparse.Namespace) -> Answer:
    """Draw the figure, and answer where it is."""
    runs = [Path(name) for name in options.runs]
    output = Path(options.output) if options.output else runs[0] / "curves.png"
    file = str(plot_runs(runs, output))
    return Answer(Plotted(file), f"{file}\n")
