"""The command `rlcore prove`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rlcore.cli import Answer, add_json
from rlcore.cli.arguments import override_arguments, positive

DESCRIPTION = "Prove that a config's runs survive kills, stops and damage, on this machine; takes minutes."


@dataclass(frozen=True)
class ProvedClaim:
    """Something that a run claims.

    Attributes:
        claim: what is looked at.
        verdict: `holds`, `does not hold`, `measured`, or `not claimed`, where the run says that it cannot do so.
        figures: what was seen.
    """

    claim: str
    verdict: str
    figures: str


@dataclass(frozen=True)
class Proved:
    """A config that was put to the proof.

    Attributes:
        config: the file.
        clock: what its runs count, `frames` or `updates`.
        until: how many of them the run took that was proved.
        between_checkpoints: how many of them are between two checkpoints.
        claims: what holds and what does not.
        folder: with the runs and recordings; null without `--keep`.
    """

    config: str
    clock: str
    until: int
    between_checkpoints: int
    claims: list[ProvedClaim]
    folder: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore prove`."""
    parser.description = DESCRIPTION
    parser.add_argument("config", metavar="CONFIG", help="a TOML file")
    override_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="a shorter run, fewer kills, smaller samples")
    parser.add_argument("--kills", type=positive, metavar="N", help="how often the run is killed; default: 20")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the runs, and print where it is")
    add_json(parser, Proved)


def run(options: argparse.Namespace) -> Answer:
    """Prove."""
    from rlcore_plugin_testing.prove.proof import run

    return run(options)
