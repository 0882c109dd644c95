"""Size and checksum of what a dataset holds: XXH3, 128 bits; and its files, which lie in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.errors import StorageError
from rlcore.files import inside

_PIECE: Final = 1 << 22


def own_file(folder: Path, name: str) -> Path:
    """Return a file of a dataset by its path in the folder.

    Raises:
        StorageError: it is a link, which may lead to any file, or no file.
    """
    try:
        file = inside(folder, name)
    except StorageError as error:
        raise StorageError(f"{error}; copy the dataset with what it links to: cp -rL {folder} COPY") from None
    if file.exists() and not file.is_file():
        raise StorageError(f"{file} is no file")
    return file


def read_own(folder: Path, name: str, most: int) -> bytes:
    """Return the content of a file of a dataset by its path in the folder.

    Raises:
        StorageError: it is a link, or no file.
        ValueError: it has more than `most` bytes.
        OSError: it cannot be read.
    """
    with own_file(folder, name).open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def checksum_of(table: Mapping[str, Any]) -> str:
    """Return the checksum of a table as JSON holds it, in whatever order and layout."""
    return xxhash.xxh3_128_hexdigest(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())


def describe_files(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Return `{"size": …, "xxh3": …}` of the data.

    Where they are in several files, these are the size of all and the checksum of their checksums, and `files` has
    the checksum of each by its path in the folder.

    Raises:
        StorageError: one cannot be read; names it.
    """
    names = [file.relative_to(folder).as_posix() for file in files]
    each = {name: _describe(own_file(folder, name)) for name in names}
    if len(each) == 1:
        return next(iter(each.values()))
    checksums = {path: found["xxh3"] for path, found in each.items()}
    whole = xxhash.xxh3_128_hexdigest("".join(checksums.values()).encode())
    return {"size": sum(found["size"] for found in each.values()), "xxh3": whole, "files": checksums}


def first_changed(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Return the path of the first of several files that has another checksum than expected; None where none has."""
    known = expected.get("files")
    if not isinstance(known, dict):
        return None
    return next((path for path, checksum in found.get("files", {}).items() if known.get(path) != checksum), None)


def _describe(file: Path) -> dict[str, Any]:
    digest = xxhash.xxh3_128()
    try:
        with file.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
            return {"size": stream.tell(), "xxh3": digest.hexdigest()}
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error}") from None
