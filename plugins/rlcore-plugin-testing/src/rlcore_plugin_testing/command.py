"""The command `rlcore prove`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

from rlcore.cli.arguments import override_arguments, positive

DESCRIPTION = "Prove that a config's runs survive kills, stops and damage, on this machine; takes minutes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore prove`."""
    parser.description = DESCRIPTION
    parser.add_argument("config", metavar="CONFIG", help="a TOML file")
    override_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="a shorter run, fewer kills, smaller samples")
    parser.add_argument("--kills", type=positive, metavar="N", help="how often the run is killed; default: 20")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the runs, and print where it is")


def run(options: argparse.Namespace) -> int:
    """Prove; return the exit code."""
    from rlcore_plugin_testing.prove.proof import run

    return run(options)
