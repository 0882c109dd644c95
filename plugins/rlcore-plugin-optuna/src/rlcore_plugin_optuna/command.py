"""The command `rlcore sweep`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from rlcore.cli import Answer, add_json, positive, trust_argument

DESCRIPTION = (
    "Search the settings of a config: train trials that a study file describes, chosen and pruned by Optuna, and "
    "write the config of the best one."
)


@dataclass(frozen=True)
class BestTrial:
    """The best trial of a study.

    Attributes:
        number: of the trial.
        value: what it reached.
        values: of the keys that are searched.
        config: the file that `rlcore train` takes.
    """

    number: int
    value: float
    values: dict[str, Any]
    config: str


@dataclass(frozen=True)
class Swept:
    """What a study found so far.

    Attributes:
        folder: of the study.
        trials: how many of them are `complete`, `pruned`, `fail`, or `running`, which are to be resumed.
        best: null while none is complete.
    """

    folder: str
    trials: dict[str, int]
    best: BestTrial | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore sweep`."""
    parser.description = DESCRIPTION
    parser.add_argument("study", metavar="STUDY", help="a TOML file: base config, search space, metric, trials")
    parser.add_argument("--resume", action="store_true", help="go on with a study that is there, its killed runs too")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="trials at once; default: 1")
    parser.add_argument("--trials", type=positive, metavar="N", help="in place of `trials` of the study file")
    parser.add_argument("--dry-run", action="store_true", help="check the study file and its space; train nothing")
    trust_argument(parser)
    add_json(parser, Swept)


def run(options: argparse.Namespace) -> Answer:
    """Sweep."""
    from rlcore_plugin_optuna.sweep import run

    return run(options)
