"""A CSV file that is only appended to, and can be cut back to where a checkpoint was."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlcore.files.growing import GrowingFile, open_log


class Table:
    """A CSV file with a header, made when the first row comes; UTF-8, whatever the locale.

    Attributes:
        file: where the rows are.
    """

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self.file = GrowingFile(path)
        self._header = header

    def append(self, rows: Iterable[Sequence[object]]) -> None:
        """Append rows; nothing is made of none.

        Raises:
            OSError: the disk has refused rows for so long that no more can be held.
        """
        rows = list(rows)
        if rows:
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            if not self.file.size:
                writer.writerow(self._header)
            writer.writerows(rows)
            self.file.append(text.getvalue().encode("utf-8", "backslashreplace"))

    def rows_after(self, size: int) -> list[list[str]]:
        """Return the rows after `size` bytes, without the header."""
        if not self.file.path.exists():
            return []
        with open_log(self.file.path) as stream:
            stream.seek(size)
            text = stream.read().decode(errors="replace")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        return rows[1:] if size == 0 else rows
