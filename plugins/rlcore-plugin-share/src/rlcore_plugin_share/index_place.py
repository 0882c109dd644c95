"""Where an index is read from: this package, a file, or an address, of which a copy is kept."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import time
import urllib.error
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from rlcore.errors import PluginError, StorageError, describe
from rlcore.files import read_plain, replacing
from rlcore_plugin_share.index import MOST_BYTES, Listed, parse, shipped
from rlcore_plugin_share.manifest import shown
from rlcore_plugin_share.places.web import get

log = logging.getLogger(__name__)

# names the folder of the copies, in the place of the one that the platform has for caches
CACHE_HOME: Final = "RLCORE_CACHE_HOME"
# for all of an answer; what drips longer is no answer
_SECONDS: Final = 60.0
_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class _Copy:
    """An index as it was fetched, with its checksum file and the tag that the server gave it."""

    raw: bytes
    checksum: bytes
    tag: str


def read_index(place: str | None) -> list[Listed]:
    """Return the plugins of an index.

    Args:
        place: a file, or an address; None for the index of this package.

    Raises:
        PluginError: there is none, or it cannot be used.
        ConfigError: it is an address that is not fetched.
    """
    if place is None:
        return shipped()
    if "://" in place:
        return _at_address(place)
    try:
        beside = Path(f"{place}.sha256")
        return parse(read_plain(Path(place), MOST_BYTES + 1), read_plain(beside, MOST_BYTES), repr(place))
    except (OSError, StorageError) as error:
        raise PluginError(f"the index {place!r}, and its checksum {place}.sha256, cannot be read: {error}") from None


def _at_address(address: str) -> list[Listed]:
    """Return the plugins of an index at an address; where it does not answer, those of the copy, which is said."""
    file = _cache() / f"{hashlib.sha256(address.encode()).hexdigest()[:32]}.json"
    copy = _read_copy(file)
    try:
        fetched = _fetched(address, copy)
    except urllib.error.HTTPError as error:
        problem = f"{error.code} {error.reason}"
    except (OSError, ValueError, HTTPException) as error:
        problem = describe(error)
    else:
        plugins = parse(fetched.raw, fetched.checksum, f"at {address}")
        if fetched is not copy:
            _keep(file, fetched)
        return plugins
    if copy is None:
        raise PluginError(
            f"the index at {address} cannot be fetched: {shown(problem)}; without --index, that of this version is read"
        )
    when = time.strftime("%Y-%m-%d", time.localtime(file.stat().st_mtime))
    log.warning("%s cannot be fetched (%s): this is the copy of %s", address, shown(problem), when)
    return parse(copy.raw, copy.checksum, f"in {file}")


def _fetched(address: str, copy: _Copy | None) -> _Copy:
    """Fetch an index and its checksum, or return the copy where the server says that it is the same.

    Raises:
        OSError: there is no answer, or one that says no.
        ValueError: the answer is too long, or does not end.
    """
    headers = {"If-None-Match": copy.tag} if copy is not None and copy.tag else {}
    try:
        with get(address, headers) as answer:
            raw, tag = _whole(answer), str(answer.headers.get("ETag", ""))
    except urllib.error.HTTPError as error:
        if copy is not None and error.code == HTTPStatus.NOT_MODIFIED:
            return copy
        raise
    with get(f"{address}.sha256") as answer:
        return _Copy(raw, _whole(answer), tag)


def _whole(answer: Any) -> bytes:
    deadline, content = time.monotonic() + _SECONDS, bytearray()
    while piece := answer.read1(_PIECE):
        content += piece
        if len(content) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise ValueError(f"it did not arrive in {_SECONDS:.0f} s")
    length = answer.headers.get("Content-Length")
    if length is not None and length.isdecimal() and int(length) != len(content):
        raise ValueError(f"only {len(content):,} of {int(length):,} bytes arrived")
    return bytes(content)


def _read_copy(file: Path) -> _Copy | None:
    try:
        content = json.loads(read_plain(file, 2 * MOST_BYTES))
        return _Copy(content["raw"].encode(), content["checksum"].encode(), str(content["tag"]))
    except (OSError, StorageError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _keep(file: Path, fetched: _Copy) -> None:
    content = {"raw": fetched.raw.decode(), "checksum": fetched.checksum.decode(), "tag": fetched.tag}
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(file) as place:
            place.write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        log.warning("no copy of the index can be kept in %s: %s", file.parent, error)


def _cache() -> Path:
    """Return the folder of the copies."""
    if place := os.environ.get(CACHE_HOME):
        return Path(place) / "indexes"
    of_platform = {"win32": os.environ.get("LOCALAPPDATA", "~/AppData/Local"), "darwin": "~/Library/Caches"}
    home = os.environ.get("XDG_CACHE_HOME") or of_platform.get(sys.platform, "~/.cache")
    return Path(home).expanduser() / "rlcore" / "indexes"
