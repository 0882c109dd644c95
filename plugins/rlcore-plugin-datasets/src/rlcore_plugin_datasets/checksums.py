"""Size and checksum of the files that a dataset's data lie in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.errors import StorageError

_PIECE: Final = 1 << 22


def describe_files(files: Sequence[Path]) -> dict[str, Any]:
    """Return size and checksum of files, one after the other (XXH3, 128 bits).

    Raises:
        StorageError: one cannot be read.
    """
    digest, size = xxhash.xxh3_128(), 0
    for file in files:
        try:
            with file.open("rb") as stream:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
        except OSError as error:
            raise StorageError(f"{file} cannot be read: {error}") from None
    return {"size": size, "xxh3": digest.hexdigest()}
