"""A CSV file that only grows, and can be cut back to where a checkpoint was."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlcore.files.growing import GrowingFile
from rlcore.files.log_files import whole_lines


class Table:
    """A CSV file with a header, made when the first row comes; UTF-8, whatever the locale.

    Args:
        path: of the file.
        header: names of the columns.

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
        """Return the rows after `size` bytes, without the header; the last may lack what a crash cut off."""
        text = b"".join(whole_lines(self.file.path, size)).decode(errors="replace")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        return rows[1:] if size == 0 else rows
