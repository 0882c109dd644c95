"""The manifest of what was pushed: kind, name, and size and SHA-256 of every file; rendered, and read with suspicion.

It is written last, so that a place without it holds nothing that is complete.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore_plugin_share.kinds import KINDS, Kind

FORMAT: Final = 1
MANIFEST: Final = "rlcore-share.json"
# what a push that goes on, or was cut off, is about
UNFINISHED: Final = "rlcore-share.unfinished.json"
MOST_BYTES: Final = 32 << 20
MOST_FILES: Final = 100_000
MOST_VALUES: Final = 1_000_000
_MOST_SIZE: Final = 1 << 42
_LONGEST: Final = 400
_DEEPEST: Final = 8
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# no separator of Windows, no control code, nothing hidden; a dot or space at the end is lost on Windows
_PART: Final = re.compile(r"[A-Za-z0-9_+=@%(\[,-](?:[A-Za-z0-9_+=@%()\[\], .-]{0,198}[A-Za-z0-9_+=@%()\[\],-])?")
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """Size in bytes and SHA-256 of a file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What was pushed.

    Attributes:
        kind: a key of `KINDS`.
        name: of the run, policy or dataset; for people.
        rlcore: the version that pushed it.
        files: by path, with `/` between its parts.
    """

    kind: str
    name: str
    rlcore: str
    files: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    def render(self) -> bytes:
        """Return the text of the manifest, with its checksum."""
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "name": self.name,
            "rlcore": self.rlcore,
            "files": {name: [entry.size, entry.sha256] for name, entry in sorted(self.files.items())},
        }
        return json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode()


def parse(raw: bytes, where: str) -> Manifest:
    """Return a manifest of anybody.

    Args:
        raw: its text.
        where: it is from, for messages.

    Raises:
        StorageError: it is damaged, of a newer format, or names files that may not be written here.
    """
    try:
        if len(raw) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        check_values(raw)
        content = json.loads(raw, object_pairs_hook=_unique)
        version = content["format"]
        if type(version) is int and version > FORMAT:
            raise ValueError(
                f"it has format {version}, and this rlcore reads up to {FORMAT}; update rlcore-plugin-share"
            )
        return _checked(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"the manifest {where} cannot be used: {shown(str(error))[:_LONGEST]}") from None


def check_values(raw: bytes) -> None:
    """Refuse JSON of so many values that parsing it would take many times its size in memory.

    Raises:
        ValueError: it has more than `MOST_VALUES`.
    """
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")


def shown(text: str) -> str:
    """Return a text of anybody for a terminal: control codes are escaped."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def problem_of(name: str, kind: Kind) -> str:
    """Return why no file of a name may travel with a kind; empty where it may."""
    parts = name.split("/")
    if len(name) > _LONGEST or len(parts) > _DEEPEST:
        return "its path is too long"
    if not all(_PART.fullmatch(part) and not _DEVICES.fullmatch(part) for part in parts):
        return "its path has a part that is hidden, leads out of the folder, or is no file name on every system"
    if not kind.accepts(name):
        return f"it is no file of a {kind.name}"
    return ""


def _checked(content: Mapping[str, Any]) -> Manifest:
    plain = {key: value for key, value in content.items() if key != "checksum"}
    if content["checksum"] != _checksum(plain):
        raise ValueError("its checksum does not match")
    if set(plain) != {"format", "kind", "name", "rlcore", "files"} or plain["format"] != FORMAT:
        raise ValueError(f"it has the entries {', '.join(map(repr, plain))}")
    kind, files = plain["kind"], plain["files"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"it is of a {kind!r}, and what is known is {', '.join(KINDS)}")
    if not all(isinstance(plain[key], str) and len(plain[key]) <= _LONGEST for key in ("name", "rlcore")):
        raise ValueError("its name or version is no short text")
    if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
        raise ValueError(f"it lists no files, or more than {MOST_FILES:,}")
    for name in files:
        if problem := problem_of(name, KINDS[kind]):
            raise ValueError(f"{name!r}: {problem}")
    _check_apart(files)
    lacking = KINDS[kind].lacks(files)
    if lacking:
        raise ValueError(f"it is of a {kind} and has no {lacking}")
    return Manifest(kind, plain["name"], plain["rlcore"], {name: _entry(name, value) for name, value in files.items()})


def _entry(name: str, value: Any) -> Entry:
    size, sha256 = value if isinstance(value, list) and len(value) == 2 else (None, None)
    if type(size) is not int or not 0 <= size <= _MOST_SIZE:
        raise ValueError(f"{name!r}: its size is {size!r:.40}")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise ValueError(f"{name!r}: its checksum is {sha256!r:.40}")
    return Entry(size, sha256)


def _check_apart(names: Iterable[str]) -> None:
    """Refuse paths that are one on a system that knows no upper case, or of which one is the folder of another."""
    files: dict[str, str] = {}
    for name in names:
        other = files.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(f"{other!r} and {name!r} are one file on some systems")
    for name in files.values():
        parts = name.lower().split("/")
        above = next((path for end in range(1, len(parts)) if (path := "/".join(parts[:end])) in files), None)
        if above is not None:
            raise ValueError(f"{files[above]!r} is a file, and the folder of {name!r}")


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key is in it twice")
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
