"""The index that `rlcore plugins search` reads by default: the distributions of this repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from made_pages import ROOT, distributions
from packaging.version import Version
from rlcore_plugin_share.index import CHECKSUM, INDEX, Listed, checksum_line, render

from rlcore.plugins.catalogue import PREFIX, PUBLISHED, Published

_FOLDER: Final = ROOT / "plugins/rlcore-plugin-share/src/rlcore_plugin_share"


def index_files() -> dict[Path, str]:
    """Return the text of the index and that of its checksum file, by their place."""
    text = render(_plugins())
    return {_FOLDER / INDEX: text, _FOLDER / CHECKSUM: checksum_line(text.encode())}


def _plugins() -> Iterator[Listed]:
    for name, published in PUBLISHED.items():
        project = distributions()[PREFIX + name]
        version = Version(project["version"])
        yield Listed(
            name,
            project["name"],
            f">={version.major}.{version.minor},<{version.major}.{version.minor + 1}",
            tuple(_provided(published)),
            project["description"],
            f"{project['urls']['Documentation']}/en/latest/plugins/{project['name']}.html",
        )


def _provided(published: Published) -> Iterator[str]:
    if not published.for_tests:
        for kind, names in published.components.items():
            yield from (f"{kind} {name}" for name in names)
    yield from (f"command {name.replace('.', ' ')}" for name in published.commands)
