"""Arguments that several of the commands have."""

from __future__ import annotations

import argparse

from rlcore.cli import trust_argument


def add_agent_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which agent of a run plays, and what may be otherwise than in its training."""
    add_best(parser)
    parser.add_argument("--agent", metavar="FILE", help="play an exported file in the place of the checkpoint")
    parser.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="override a key of env or evaluator, or run.threads"
    )
    trust_argument(parser)


def add_best(parser: argparse.ArgumentParser) -> None:
    """Add which checkpoint of a run is taken."""
    parser.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the latest")
