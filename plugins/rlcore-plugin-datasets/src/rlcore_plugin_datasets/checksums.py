"""Size and checksum of the files that a dataset's data lie in: XXH3, 128 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.errors import StorageError

_PIECE: Final = 1 << 22


def describe_files(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Return `{"size": …, "xxh3": …}` of the data.

    Where they are in several files, these are the size of all and the checksum of their checksums, and `files` has
    the checksum of each by its path in the folder.

    Raises:
        StorageError: one cannot be read; names it.
    """
    each = {file.relative_to(folder).as_posix(): _describe(file) for file in files}
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
