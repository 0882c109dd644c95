"""An index of plugins: one JSON file that says what each distribution is and provides, and a search in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rlcore.errors import PluginError
from rlcore_plugin_share.manifest import check_values, shown

FORMAT: Final = 1
INDEX: Final = "index.json"
CHECKSUM: Final = f"{INDEX}.sha256"
MOST_BYTES: Final = 5_000_000
_MOST_PLUGINS: Final = 20_000
_LONGEST: Final = 500
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# what a word counts for where it is found: a name, a part of a name, what it provides, the sentence about it
_WEIGHTS: Final = (8, 4, 3, 1)


@dataclass(frozen=True)
class Listed:
    """A plugin in an index.

    Attributes:
        name: as configs name it.
        distribution: as `pip` names it.
        versions: of the distribution that there are, such as `>=0.1,<0.2`.
        provides: its components and commands, such as `loss ppo` and `command push`.
        summary: a sentence.
        homepage: an address; empty without one.
        sha256: of the wheel of its latest version; empty where it is not said.
    """

    name: str
    distribution: str
    versions: str = ""
    provides: tuple[str, ...] = ()
    summary: str = ""
    homepage: str = ""
    sha256: str = ""


def render(plugins: Iterable[Listed]) -> str:
    """Return the text of an index."""
    rows = [{key: value for key, value in asdict(plugin).items() if value} for plugin in plugins]
    return json.dumps({"format": FORMAT, "plugins": rows}, indent=1) + "\n"


def checksum_line(raw: bytes) -> str:
    """Return the content of the checksum file of an index, as `sha256sum` writes it."""
    return f"{hashlib.sha256(raw).hexdigest()}  {INDEX}\n"


def shipped() -> list[Listed]:
    """Return the plugins of the index that came with this package."""
    folder = files(__package__)
    return parse(folder.joinpath(INDEX).read_bytes(), folder.joinpath(CHECKSUM).read_bytes(), "of this package")


def parse(raw: bytes, checksum: bytes, where: str) -> list[Listed]:
    """Return the plugins of an index of anybody.

    Args:
        raw: its text.
        checksum: the content of the checksum file beside it.
        where: it is from, for messages.

    Raises:
        PluginError: it is not what the checksum says, or is no index.
    """
    try:
        if len(raw) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        words = checksum[:_LONGEST].decode("ascii", "replace").split()
        if not words or words[0] != hashlib.sha256(raw).hexdigest():
            raise ValueError(f"it is not the one that {CHECKSUM} beside it is of; it was changed, or is half written")
        check_values(raw)
        content = json.loads(raw)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}, which is what this version reads")
        rows = content.get("plugins")
        if not isinstance(rows, list) or len(rows) > _MOST_PLUGINS:
            raise ValueError(f"it has no list of plugins, or more than {_MOST_PLUGINS:,}")
        return [_listed(number, row) for number, row in enumerate(rows)]
    except (ValueError, RecursionError) as error:
        raise PluginError(f"the index {where} cannot be used: {shown(str(error))}") from None


def search(plugins: Iterable[Listed], words: Sequence[str]) -> list[Listed]:
    """Return the plugins in which every word is found, the best first; all of them for no words."""
    rated = [(_rating(plugin, [word.lower() for word in words]), plugin) for plugin in plugins]
    ordered = sorted(rated, key=lambda pair: (-pair[0], pair[1].distribution))
    return [plugin for rating, plugin in ordered if rating or not words]


def _rating(plugin: Listed, words: Sequence[str]) -> int:
    """Return how well a plugin fits; 0 where it lacks a word."""
    names = {plugin.name, plugin.distribution}
    provided = {part for text in plugin.provides for part in (*text.lower().split(), *re.split(r"[\s-]", text.lower()))}
    texts = [*names, *plugin.provides, plugin.summary]
    ratings = []
    for word in words:
        places = (
            word in names,
            any(word in name.split("-") for name in names),
            word in provided,
            any(word in text.lower() for text in texts),
        )
        ratings.append(max((weight for weight, hit in zip(_WEIGHTS, places, strict=True) if hit), default=0))
    return sum(ratings) if all(ratings) else 0


def _listed(number: int, row: Any) -> Listed:
    """Return a plugin of an index.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"entry {number} is no table")
    texts = {key: row.get(key, "") for key in ("name", "distribution", "versions", "summary", "homepage", "sha256")}
    provides = row.get("provides", [])
    if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts.values()):
        raise ValueError(f"entry {number} has a text that is none, or is too long")
    if not isinstance(provides, list) or not all(isinstance(item, str) and len(item) <= _LONGEST for item in provides):
        raise ValueError(f"entry {number}: what it provides is no list of short texts")
    if not _NAME.fullmatch(texts["name"]) or not _is_distribution(texts["distribution"]):
        raise ValueError(f"entry {number}: {texts['name']!r} of {texts['distribution']!r} is no name of a plugin")
    try:
        SpecifierSet(texts["versions"])
    except InvalidSpecifier:
        raise ValueError(f"entry {number}: {texts['versions']!r} is no range of versions") from None
    if texts["homepage"] and not texts["homepage"].startswith("https://"):
        raise ValueError(f"entry {number}: its homepage {texts['homepage']!r} is no https address")
    if texts["sha256"] and not _SHA256.fullmatch(texts["sha256"]):
        raise ValueError(f"entry {number}: its sha256 is none")
    return Listed(provides=tuple(provides), **texts)


def _is_distribution(text: str) -> bool:
    """Return whether a text is the name of a distribution alone, as it is printed behind `pip install`."""
    try:
        return Requirement(text).name == text
    except InvalidRequirement:
        return False
