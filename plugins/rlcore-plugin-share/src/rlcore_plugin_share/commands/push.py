"""`rlcore push`: a run, an exported policy or a dataset, to another place."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlcore_plugin_share.pushing import Pushed


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


def run(options: argparse.Namespace) -> int:
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
    print("\n".join(_lines(options.target, done)))
    return 0


def _lines(target: str, done: Pushed) -> Iterator[str]:
    from rlcore_plugin_share.manifest import shown

    manifest = done.manifest
    size = sum(manifest.files[name].size for name in done.new)
    there = len(manifest.files) - len(done.new)
    yield f"{target}: the {manifest.kind} {manifest.name}, {len(manifest.files)} files, {manifest.size:,} bytes"
    yield f"  transferred {len(done.new)} files, {size:,} bytes; {there} were there already"
    yield from (f"  left behind: {shown(line)}" for line in done.left)
