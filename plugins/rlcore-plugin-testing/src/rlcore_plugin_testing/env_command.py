"""The command `rlcore env`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

from rlcore.cli import positive, trust_argument

DESCRIPTION = "Find out whether an environment can be trained on: its form, ends, seeds, saved state, infos and speed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore env`."""
    parser.description = "Check an environment."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help=DESCRIPTION[0].lower() + DESCRIPTION[1:-1])
    check.add_argument(
        "id", metavar="ID", nargs="?", help="of a Gymnasium environment; a module before a colon is imported"
    )
    check.add_argument("--config", metavar="CONFIG", help="check the [env] of this config instead, or with this ID")
    check.add_argument("--steps", type=positive, default=1000, metavar="N", help="random steps; default: 1000")
    trust_argument(check)


def run(options: argparse.Namespace) -> int:
    """Check; return the exit code."""
    from rlcore_plugin_testing.env_check import run

    return run(options)
