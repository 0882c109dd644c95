"""`rlcore plugins search`: plugins that there are, installed or not, by what they provide."""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rlcore.cli import Answer, add_json
from rlcore.plugins import installed
from rlcore_plugin_share.index import Listed, search
from rlcore_plugin_share.index_place import read_index
from rlcore_plugin_share.manifest import shown

# of what a plugin provides, what fits the words first
_MOST_PROVIDED: Final = 8


@dataclass(frozen=True)
class ListedPlugin:
    """A plugin that a search names.

    Attributes:
        name: as configs name it.
        distribution: as `pip` names it.
        installed: whether it is, here.
        versions: of the distribution that there are.
        provides: its components and commands.
        summary: a sentence.
        homepage: an address; empty without one.
    """

    name: str
    distribution: str
    installed: bool
    versions: str
    provides: list[str]
    summary: str
    homepage: str


@dataclass(frozen=True)
class SearchAnswer:
    """What a search is answered with.

    Attributes:
        plugins: that have all the words.
    """

    plugins: list[ListedPlugin]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins search`."""
    parser.description = "Search plugins by name, by what they provide, and by what is said of them."
    parser.add_argument(
        "words", nargs="*", metavar="WORDS", help="each must be in a plugin, such as loss or sac; without any: all"
    )
    parser.add_argument(
        "--index", metavar="FILE_OR_URL", help="an index with its checksum beside it; default: the one of this version"
    )
    add_json(parser, SearchAnswer)


def run(options: argparse.Namespace) -> Answer:
    """Search, and answer with the plugins; the exit code is 0 also where there is none."""
    here = {plugin.distribution for plugin in installed()}
    words = [word.lower() for word in options.words]
    plugins = [_listed(plugin, here, words) for plugin in search(read_index(options.index), options.words)]
    lines = _lines(plugins) if plugins else [f"no plugin of this index has all of: {' '.join(map(shown, words))}"]
    return Answer(SearchAnswer(plugins), "\n".join(lines) + "\n")


def _listed(plugin: Listed, here: Container[str], words: Sequence[str]) -> ListedPlugin:
    provides = sorted(plugin.provides, key=lambda text: not any(word in text.lower() for word in words))
    return ListedPlugin(
        plugin.name,
        plugin.distribution,
        plugin.distribution in here,
        plugin.versions,
        provides,
        plugin.summary,
        plugin.homepage,
    )


def _lines(plugins: Iterable[ListedPlugin]) -> Iterator[str]:
    for plugin in plugins:
        state = "installed" if plugin.installed else f"pip install {plugin.distribution}"
        yield f"{plugin.name}: {shown(plugin.summary)}  [{state}]"
        if plugin.provides:
            more = ", …" if len(plugin.provides) > _MOST_PROVIDED else ""
            yield f"  provides {shown(', '.join(plugin.provides[:_MOST_PROVIDED]))}{more}"
        if plugin.homepage:
            yield f"  {shown(plugin.homepage)}"
