"""`rlcore plot`: the curves of one or several runs on one figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.reports.plotting import plot_runs


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print where it is."""
    runs = [Path(name) for name in options.runs]
    output = Path(options.output) if options.output else runs[0] / "curves.png"
    print(plot_runs(runs, output))
    return 0
