"""`rlcore pull`: what `rlcore push` wrote to a place, into a folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.cli import Answer, add_json, positive
from rlcore.errors import ConfigError
from rlcore.run_folder import read_config

if TYPE_CHECKING:
    from rlcore_plugin_share.pulling import Pulled


@dataclass(frozen=True)
class PullAnswer:
    """What was pulled.

    Attributes:
        folder: that was made.
        kind: run, policy or dataset.
        name: of it.
        rlcore: the version that pushed it.
        files: paths of all in it.
        transferred: paths of the files that an earlier pull had not fetched.
        variables: names of the environment variables that the config of a run asks for.
    """

    folder: str
    kind: str
    name: str
    rlcore: str
    files: list[str]
    transferred: list[str]
    variables: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore pull`."""
    parser.description = "Pull what rlcore push wrote to a place into a new folder; nothing of it is run."
    parser.add_argument(
        "source", metavar="SOURCE", help="a folder, a URL of fsspec, hf://USER/NAME, or https:// of such a folder"
    )
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="to make; default: the last part of SOURCE, here")
    parser.add_argument(
        "--most-gb", type=positive, default=100, metavar="N", help="refuse what has more gigabytes; default: 100"
    )
    add_json(parser, PullAnswer)


def run(options: argparse.Namespace) -> Answer:
    """Pull, and print what arrived."""
    from rlcore_plugin_share.leaks import references
    from rlcore_plugin_share.pulling import pull

    last = options.source.rstrip("/").rpartition("/")[2]
    if options.folder is None and last in ("", ".", ".."):
        raise ConfigError(f"{options.source!r} has no last part to name the folder by; name one")
    done = pull(options.source, Path(options.folder or last), options.most_gb * 10**9)
    manifest = done.manifest
    variables = sorted(set(references(read_config(done.folder)))) if manifest.kind == "run" else []
    data = PullAnswer(
        str(done.folder), manifest.kind, manifest.name, manifest.rlcore, list(manifest.files), done.new, variables
    )
    return Answer(data, "\n".join(_lines(done, variables)) + "\n")


def _lines(done: Pulled, variables: list[str]) -> Iterator[str]:
    from rlcore_plugin_share.manifest import shown

    manifest = done.manifest
    size = sum(manifest.files[name].size for name in done.new)
    yield f"{done.folder}: the {manifest.kind} {shown(manifest.name)}, of rlcore {shown(manifest.rlcore)}"
    yield f"  transferred {len(done.new)} files, {size:,} bytes; every checksum is right"
    if variables:
        names = ", ".join(map(shown, variables))
        yield f"  its config asks for the environment variables {names}: read it before you resume, and to whom they go"
