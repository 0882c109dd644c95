"""A CSV file that is only appended to, and can be cut back to a length."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO


class Table:
    """A CSV file with a header, made when the first row comes."""

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self._path = path
        self._header = header
        self._stream: TextIO | None = None

    def append(self, rows: Iterable[Sequence[object]]) -> None:
        """Append rows; nothing is made of none."""
        rows = list(rows)
        if rows:
            csv.writer(self._open(), lineterminator="\n").writerows(rows)

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        """Flush and close; a further row opens the file again."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def size(self) -> int:
        """Return the length in bytes."""
        self.flush()
        return self._path.stat().st_size if self._path.exists() else 0

    def cut(self, size: int) -> None:
        """Remove everything after `size` bytes."""
        self.close()
        if self._path.exists():
            os.truncate(self._path, size)

    def rows_after(self, size: int) -> list[list[str]]:
        """Return the rows after `size` bytes, without the header."""
        self.flush()
        if not self._path.exists():
            return []
        with self._path.open(newline="") as stream:
            stream.seek(size)
            rows = list(csv.reader(stream))
        return rows[1:] if size == 0 else rows

    def _open(self) -> TextIO:
        if self._stream is None:
            if not self._path.parent.is_dir():
                self._path.parent.mkdir(parents=True)
            new = not self._path.exists() or not self._path.stat().st_size
            self._stream = self._path.open("a", newline="")
            if new:
                csv.writer(self._stream, lineterminator="\n").writerow(self._header)
        return self._stream
