"""`rlcore plugins search`: plugins that there are, installed or not, by what they provide."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from rlcore.plugins import installed
from rlcore_plugin_share.index import Listed, search
from rlcore_plugin_share.index_place import read_index
from rlcore_plugin_share.manifest import shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins search`."""
    parser.description = "Search plugins by name, by what they provide, and by what is said of them."
    parser.add_argument(
        "words", nargs="*", metavar="WORDS", help="each must be in a plugin, such as loss or sac; without any: all"
    )
    parser.add_argument(
        "--index", metavar="FILE_OR_URL", help="an index with its checksum beside it; default: the one of this version"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Search, and print the plugins; the exit code is 0 also where there is none."""
    here = {plugin.distribution for plugin in installed()}
    plugins = search(read_index(options.index), options.words)
    if options.json:
        rows = [asdict(plugin) | {"installed": plugin.distribution in here} for plugin in plugins]
        print(json.dumps(rows, indent=1))
        return 0
    for plugin in plugins:
        _show(plugin, plugin.distribution in here, options.words)
    if not plugins:
        print(f"no plugin of this index has all of: {' '.join(map(shown, options.words))}")
    return 0


def _show(plugin: Listed, is_installed: bool, words: Sequence[str]) -> None:
    state = "installed" if is_installed else f"pip install {plugin.distribution}"
    print(f"{shown(plugin.name)}: {shown(plugin.summary)}  [{state}]")
    asked = [word.lower() for word in words]
    provides = sorted(plugin.provides, key=lambda text: not any(word in text.lower() for word in asked))
    if provides:
        print(f"  provides {shown(', '.join(provides[:8]))}{', …' if len(provides) > 8 else ''}")
    if plugin.homepage:
        print(f"  {shown(plugin.homepage)}")
