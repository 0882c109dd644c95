"""`rlcore plugins search`: plugins that there are, installed or not, by what they provide."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final

from rlcore.plugins import installed
from rlcore_plugin_share.index import Listed, search
from rlcore_plugin_share.index_place import read_index
from rlcore_plugin_share.manifest import shown

# of what a plugin provides, what fits the words first
_MOST_PROVIDED: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins search`."""
    parser.description = "Search plugins by name, by what they provide, and by what is said of them."
    parser.add_argument(
        "words", nargs="*", metavar="WORDS", help="each must be in a plugin, such as loss or sac; without any: all"
    )
    parser.add_argument(
        "--index", metavar="FILE_OR_URL", help="an index with its checksum beside it; default: the one of this version"
    )


def run(options: argparse.Namespace) -> int:
    """Search, and print the plugins; the exit code is 0 also where there is none."""
    plugins = search(read_index(options.index), options.words)
    print("\n".join(_lines(plugins, [word.lower() for word in options.words])))
    return 0


def _lines(plugins: Sequence[Listed], words: Sequence[str]) -> Iterator[str]:
    here = {plugin.distribution for plugin in installed()}
    for plugin in plugins:
        state = "installed" if plugin.distribution in here else f"pip install {plugin.distribution}"
        yield f"{plugin.name}: {shown(plugin.summary)}  [{state}]"
        provides = sorted(plugin.provides, key=lambda text: not any(word in text.lower() for word in words))
        if provides:
            more = ", …" if len(provides) > _MOST_PROVIDED else ""
            yield f"  provides {shown(', '.join(provides[:_MOST_PROVIDED]))}{more}"
        if plugin.homepage:
            yield f"  {shown(plugin.homepage)}"
    if not plugins:
        yield f"no plugin of this index has all of: {' '.join(map(shown, words))}"
