"""The command `rlcore env`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rlcore.cli import Answer, add_json, positive, trust_argument

DESCRIPTION = "Find out whether an environment can be trained on: its form, ends, seeds, saved state, infos and speed."


@dataclass(frozen=True)
class EnvFinding:
    """What was found out about one thing.

    Attributes:
        kind: `problem` keeps a run from being right; `advice` and `fine` do not.
        about: what was looked at.
        text: what was found.
    """

    kind: str
    about: str
    text: str


@dataclass(frozen=True)
class CheckedEnv:
    """What was found out about an environment.

    Attributes:
        findings: in the order in which they came.
    """

    findings: list[EnvFinding]


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
    add_json(check, CheckedEnv)


def run(options: argparse.Namespace) -> Answer:
    """Check."""
    from rlcore_plugin_testing.env_check import run

    return run(options)
