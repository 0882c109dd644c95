"""The command `rlcore data`: its arguments. What it does is imported when it is called."""

from __future__ import annotations

import argparse

from rlcore.cli import Answer, add_json, positive, trust_argument
from rlcore_plugin_datasets.answers import CheckedDataset, ShownDataset

DESCRIPTION = "Record what a policy does as a dataset in Minari's format; show, check, convert and merge datasets."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore data`."""
    parser.description = DESCRIPTION
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    record = actions.add_parser("record", help="play episodes with the policy of a run or a config, and write them")
    record.add_argument("run", metavar="RUN|CONFIG", help="a run folder, or a config: its policy before any training")
    record.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="override a key of the config; of a run, one of [env]"
    )
    record.add_argument("--episodes", type=positive, required=True, metavar="N", help="how many")
    record.add_argument("--out", required=True, metavar="FOLDER", help="of the dataset; must not exist")
    record.add_argument("--seed", type=int, default=0, help="of the first episode's reset; the others count up")
    record.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the latest")
    how = record.add_mutually_exclusive_group()
    how.add_argument("--sample", action="store_true", help="sample the actions, as in training, not the likeliest")
    how.add_argument("--random", action="store_true", help="take uniform actions in the place of the policy's")
    record.add_argument(
        "--most-steps", type=positive, default=1_000_000, metavar="N", help="of an episode; default: 1,000,000"
    )
    record.add_argument("--infos", action="store_true", help="record the numbers in the infos of each step too")
    trust_argument(record)
    for name, text in (("show", "say what a dataset holds"), ("check", "verify a dataset, and look at every value")):
        action = actions.add_parser(name, help=text)
        action.add_argument("dataset", metavar="FOLDER", help="a dataset")
        add_json(action, ShownDataset if name == "show" else CheckedDataset)
    convert = actions.add_parser("convert", help="write a dataset of another file, or again in another format")
    convert.add_argument(
        "source", metavar="SOURCE", help="a file NAME.episodes of the hook record, a file of d3rlpy, or a dataset"
    )
    convert.add_argument("--out", required=True, metavar="FOLDER", help="of the dataset; must not exist")
    convert.add_argument("--env", metavar="ID", help="of Gymnasium: the data get its spaces, where they fit them")
    convert.add_argument(
        "--compress", type=int, choices=range(1, 10), metavar="LEVEL", help="by gzip, 1 to 9; default: not at all"
    )
    merge = actions.add_parser("merge", help="write the episodes of several datasets into one")
    merge.add_argument("datasets", nargs="+", metavar="FOLDER", help="datasets of equal spaces")
    merge.add_argument("--out", required=True, metavar="FOLDER", help="of the new one; must not exist")
    for action in (record, convert, merge):
        action.add_argument(
            "--format", choices=("hdf5", "arrow", "parquet"), default="hdf5", help="of what is written; default: hdf5"
        )
        add_json(action, ShownDataset)


def run(options: argparse.Namespace) -> Answer:
    """Do it."""
    from rlcore_plugin_datasets.actions import run

    return run(options)
