"""Tables that a run appends to, of which each row is read once."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rlcore.errors import StorageError
from rlcore.files import plain_file

_PIECE_BYTES: Final = 1 << 22
# of what was read last: a table that was cut back and has grown again differs there
_MARK_BYTES: Final = 256
# from the end of a table: more than its last row needs
_TAIL_BYTES: Final = 4096


def rows_of(lines: str) -> Iterator[list[str]]:
    """Yield the rows of whole lines, up to the first that no table has: one with a field of over 128 kB."""
    with contextlib.suppress(csv.Error):
        yield from csv.reader(lines.splitlines())


class GrowingRows:
    """Rows of a CSV file, read as they are appended.

    Args:
        file: need not exist yet.

    Attributes:
        header: names of the columns; empty before there is a first line.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.forget()

    def forget(self) -> None:
        """Begin with the first row again."""
        self.header: list[str] = []
        self._end = 0
        self._mark = b""

    def began_again(self) -> bool:
        """Return whether the file no longer begins with what was read, as after a resume from an older checkpoint."""
        if not self._end:
            return False
        try:
            with plain_file(self._file) as stream:
                stream.seek(self._end - len(self._mark))
                return stream.read(len(self._mark)) != self._mark
        except (OSError, StorageError):
            return True

    def news(self) -> Iterator[str]:
        """Yield the whole lines that were appended since, many at a time; none of a file that cannot be read."""
        try:
            with plain_file(self._file) as stream:
                stream.seek(self._end)
                while piece := stream.read(_PIECE_BYTES):
                    whole = piece[: piece.rfind(b"\n") + 1]
                    if not whole:
                        return
                    self._end += len(whole)
                    self._mark = whole[-_MARK_BYTES:]
                    stream.seek(self._end)
                    yield self._lines(whole.decode("utf-8", "replace").replace("\0", ""))
        except (OSError, StorageError):
            return

    def _lines(self, text: str) -> str:
        if self.header:
            return text
        first, _, rest = text.partition("\n")
        self.header = next(rows_of(first), [])
        return rest


def last_row(file: Path) -> dict[str, str]:
    """Return the last whole row of a table by its columns; empty where there is none."""
    try:
        with plain_file(file) as stream:
            header = stream.readline(_TAIL_BYTES)
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(len(header), size - _TAIL_BYTES))
            lines = stream.read()
    except (OSError, StorageError):
        return {}
    last = lines[: lines.rfind(b"\n")].rpartition(b"\n")[2]
    names, values = (next(rows_of(line.decode("utf-8", "replace")), []) for line in (header, last))
    return dict(zip(names, values, strict=False)) if len(names) == len(values) else {}
