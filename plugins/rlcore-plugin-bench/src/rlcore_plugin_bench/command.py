"""The command `rlcore bench`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

from rlcore.cli import Answer, add_json, positive
from rlcore_plugin_bench.answers import BenchTable, Ran, Rows
from rlcore_plugin_bench.texts import seconds

DESCRIPTION = (
    "Learning over tasks, methods and seeds, as a bench file lists them: what is done, run it, one page of it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore bench`."""
    parser.description = DESCRIPTION
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show what is done, stale, running and open, and how long it takes")
    running = actions.add_parser("run", help="run what is not done; what a kill or --max-time cut off is resumed")
    table = actions.add_parser("table", help="write one page about what is done")
    for each in (listing, running, table):
        each.add_argument("files", metavar="FILE", nargs="+", help="a TOML file: tasks, methods, seeds")
    for each in (listing, running):
        each.add_argument(
            "--rows",
            metavar="PATTERN",
            action="append",
            help="only those whose TASK/METHOD/SEED fits, such as 'sac-*/rlcore/1'; several times",
        )
        each.add_argument(
            "--python", metavar="NAME=PATH", action="append", default=[], help="the interpreter of peers; several times"
        )
    for each, data in ((listing, Rows), (running, Ran), (table, BenchTable)):
        add_json(each, data)
    running.add_argument("--jobs", type=positive, metavar="N", help="rows at once; default: as many as there are cores")
    running.add_argument(
        "--max-time", type=seconds, metavar="T", help="run so long, such as 90m, and begin nothing that takes longer"
    )
    again = running.add_mutually_exclusive_group()
    again.add_argument("--stale", action="store_true", help="run rows again whose config or versions changed")
    again.add_argument("--repeat", action="store_true", help="run rows again that are done")
    running.add_argument("--discard", action="store_true", help="remove the run folder of a row that is done")
    table.add_argument(
        "--output", metavar="FILE", help="the page to write (.md), its pictures beside; default: prints it"
    )


def run(options: argparse.Namespace) -> Answer:
    """List, run or write."""
    from rlcore_plugin_bench import actions

    return actions.run(options)
