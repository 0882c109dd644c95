"""The command `rlcore sweep`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

DESCRIPTION = (
    "Search the settings of a config: train trials that a study file describes, chosen and pruned by Optuna, and "
    "write the config of the best one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore sweep`."""
    parser.description = DESCRIPTION
    parser.add_argument("study", metavar="STUDY", help="a TOML file: base config, search space, metric, trials")
    parser.add_argument("--resume", action="store_true", help="go on with a study that is there, its killed runs too")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="trials at once; default: 1")
    parser.add_argument("--trials", type=_positive, metavar="N", help="in place of `trials` of the study file")
    parser.add_argument("--dry-run", action="store_true", help="check the study file and its space; train nothing")
    parser.add_argument("--trust", action="store_true", help="run code that was not written here, and remember to")


def run(options: argparse.Namespace) -> int:
    """Sweep; return the exit code."""
    from rlcore_plugin_optuna.sweep import run

    return run(options)


def _positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value
