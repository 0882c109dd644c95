"""`rlcore export`: the policy of a trained run as one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.agents.exporting import export_agent


def run(options: argparse.Namespace) -> int:
    """Export, and print what was written."""
    output = None if options.output is None else Path(options.output)
    file = export_agent(
        Path(options.run),
        options.format,
        output,
        options.best,
        options.overwrite,
        options.trust,
        options.policy,
    )
    print(f"{file}: {file.stat().st_size:,} bytes; acts as the agent of {options.run} does")
    return 0
