"""`rlcore push`: a run, an exported policy or a dataset, to another place."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.cli import Answer, add_json

if TYPE_CHECKING:
    from rlcore_plugin_share.pushing import Pushed


@dataclass(frozen=True)
class PushAnswer:
    """What was pushed.

    Attributes:
        target: the place.
        kind: run, policy or dataset.
        name: of it.
        files: paths of all that is there now.
        bytes: of all files.
        transferred: paths of the files that were not there before.
        left: a line about each file that stayed behind.
    """

    target: str
    kind: str
    name: str
    files: list[str]
    bytes: int
    transferred: list[str]
    left: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore push`."""
    parser.description = "Push a run, an exported policy or a dataset to another place, with a page and checksums."
    parser.add_argument("source", metavar="SOURCE", help="a run folder, a dataset folder, or an exported policy")
    parser.add_argument(
        "target", metavar="TARGET", help="a folder, a URL of fsspec such as s3://BUCKET/NAME, or hf://USER/NAME"
    )
    parser.add_argument(
        "--at-checkpoint",
        action="store_true",
        help="of a run: its config and latest checkpoint alone, also in training",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what was pushed there before")
    parser.add_argument(
        "--with-secrets", action="store_true", help="push files with what looks like a secret, which are refused else"
    )
    parser.add_argument("--private", action="store_true", help="of hf://: make a new repository a private one")
    add_json(parser, PushAnswer)


def run(options: argparse.Namespace) -> Answer:
    """Push, and print what was transferred and what stayed behind."""
    from rlcore_plugin_share.pushing import push

    done = push(
        Path(options.source),
        options.target,
        at_checkpoint=options.at_checkpoint,
        overwrite=options.overwrite,
        with_secrets=options.with_secrets,
        private=options.private,
    )
    manifest = done.manifest
    data = PushAnswer(
        options.target, manifest.kind, manifest.name, list(manifest.files), manifest.size, done.new, done.left
    )
    return Answer(data, "\n".join(_lines(options.target, done)) + "\n")


def _lines(target: str, done: Pushed) -> Iterator[str]:
    from rlcore_plugin_share.manifest import shown

    manifest = done.manifest
    size = sum(manifest.files[name].size for name in done.new)
    there = len(manifest.files) - len(done.new)
    yield f"{target}: the {manifest.kind} {manifest.name}, {len(manifest.files)} files, {manifest.size:,} bytes"
    yield f"  transferred {len(done.new)} files, {size:,} bytes; {there} were there already"
    yield from (f"  left behind: {shown(line)}" for line in done.left)
