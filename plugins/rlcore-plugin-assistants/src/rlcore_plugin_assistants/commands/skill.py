"""`rlcore skill`: where the skill is, or what it says."""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore skill`."""
    parser.description = "Print the folder of the skill for coding assistants, to copy or to link."
    parser.add_argument("--text", action="store_true", help="print the skill itself")


def run(options: argparse.Namespace) -> int:
    """Print the folder of the skill, or its text."""
    with as_file(files("rlcore_plugin_assistants") / "skill") as folder:
        print((folder / "SKILL.md").read_text(encoding="utf-8") if options.text else folder, end="\n")
    return 0
