"""A CSV file that grows during a run, and that a resume cuts back to its checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlcore.files.growing import GrowingFile
from rlcore.files.log_files import whole_lines


class Table:
    """Appends rows to a CSV file in UTF-8, and writes its header before the first row.

    Args:
        path: of the file.
        header: names of the columns.

    Attributes:
        file: of the rows.
    """

    def __init__(self, path: Path, header: Sequence[str]) -> None:
        self.file = GrowingFile(path)
        self._header = header

    def append(self, rows: Iterable[Sequence[object]]) -> None:
        """Append rows; the file is made with the first one.

        Raises:
            OSError: 16 MiB wait for a disk that refuses them; these rows are not appended.
        """
        rows = list(rows)
        if rows:
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            if not self.file.size:
                writer.writerow(self._header)
            writer.writerows(rows)
            # a name from the system may hold surrogates, which UTF-8 has not
            self.file.append(text.getvalue().encode("utf-8", "backslashreplace"))

    def rows_after(self, size: int) -> list[list[str]]:
        """Return the rows after `size` bytes, without the header."""
        text = b"".join(whole_lines(self.file.path, size)).decode(errors="replace")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        return rows[1:] if size == 0 else rows
