"""`rlcore report`: one HTML page about one or several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.reports.html.page import write_report


def run(options: argparse.Namespace) -> int:
    """Write the page and print where it is."""
    runs = [Path(name) for name in options.runs]
    output = Path(options.output) if options.output else runs[0] / "report.html"
    print(write_report(runs, output))
    return 0
