"""The command `rlcore sweep`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

from rlcore.cli import positive, trust_argument

DESCRIPTION = (
    "Search the settings of a config: train trials that a study file describes, chosen and pruned by Optuna, and "
    "write the config of the best one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore sweep`."""
    parser.description = DESCRIPTION
    parser.add_argument("study", metavar="STUDY", help="a TOML file: base config, search space, metric, trials")
    parser.add_argument("--resume", action="store_true", help="go on with a study that is there, its killed runs too")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="trials at once; default: 1")
    parser.add_argument("--trials", type=positive, metavar="N", help="in place of `trials` of the study file")
    parser.add_argument("--dry-run", action="store_true", help="check the study file and its space; train nothing")
    trust_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Sweep; return the exit code."""
    from rlcore_plugin_optuna.sweep import run

    return run(options)
