"""`rlcore pull`: what `rlcore push` wrote to a place, into a folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.cli import positive
from rlcore.errors import ConfigError
from rlcore.run_folder import read_config

if TYPE_CHECKING:
    from rlcore_plugin_share.pulling import Pulled


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


def run(options: argparse.Namespace) -> int:
    """Pull, and print what arrived."""
    from rlcore_plugin_share.pulling import pull

    last = options.source.rstrip("/").rpartition("/")[2]
    if options.folder is None and last in ("", ".", ".."):
        raise ConfigError(f"{options.source!r} has no last part to name the folder by; name one")
    done = pull(options.source, Path(options.folder or last), options.most_gb * 10**9)
    print("\n".join(_lines(done)))
    return 0


def _lines(done: Pulled) -> Iterator[str]:
    from rlcore_plugin_share.leaks import references
    from rlcore_plugin_share.manifest import shown

    manifest = done.manifest
    size = sum(manifest.files[name].size for name in done.new)
    yield f"{done.folder}: the {manifest.kind} {shown(manifest.name)}, of rlcore {shown(manifest.rlcore)}"
    yield f"  transferred {len(done.new)} files, {size:,} bytes; every checksum is right"
    variables = sorted(set(references(read_config(done.folder)))) if manifest.kind == "run" else []
    if variables:
        names = ", ".join(map(shown, variables))
        yield f"  its config asks for the environment variables {names}: read it before you resume, and to whom they go"
