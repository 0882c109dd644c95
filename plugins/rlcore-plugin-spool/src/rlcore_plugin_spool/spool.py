"""A file of records that wait to be sent to a server, with a note of how far they were sent."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore.files import GrowingFile, whole_lines
from rlcore_plugin_spool.notes import SENT, UNKNOWN, Sent, read_note, read_sent, write_note, write_sent
from rlcore_plugin_spool.records import Entry, Record, entries, fault, file_of, parse

log = logging.getLogger(__name__)

_RECORDS: Final = "records.jsonl"
_REPEATS: Final = "repeats.json"
_SET_ASIDE: Final = "set-aside.jsonl"


class Spool:
    """Records in a folder: `records.jsonl`, one per line, files beside it, and `sent.json`.

    After a resume that went back behind what was sent, `repeats.json` has what will come a second time. What cannot be
    sent is set aside in `set-aside.jsonl`. One thread appends and another reads and acknowledges.

    Args:
        folder: made with the first record.

    Attributes:
        file: of the records.
        set_aside_file: of those that cannot be sent.
        sent: how far they were sent, as far as is known here.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / _RECORDS
        self.set_aside_file = folder / _SET_ASIDE
        self._log = GrowingFile(self.file)
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._appended: int | None = None
        self.sent = Sent(token=secrets.token_hex(8))
        self._repeats: set[Entry] = set()
        self._took_back = False
        self.refresh()
        self._read_repeats()

    @property
    def size(self) -> int:
        """Bytes that were appended and have reached the system."""
        with self._lock:
            with contextlib.suppress(OSError):  # what the disk refuses is tried again with the next flush
                self._log.flush()
            return self._size()

    @property
    def position(self) -> dict[str, Any]:
        """Length and checksum of what was appended."""
        with self._lock:
            return self._log.position()

    @property
    def waiting(self) -> bool:
        """Whether something was appended and not handed over."""
        self.refresh()
        return self.size > self.sent.offset

    @property
    def unconfirmed(self) -> int:
        """How many records were handed over, and are not confirmed."""
        self.refresh()
        return self.sent.records - self.sent.confirmed_records

    def append(self, record: Record, files: Mapping[str, bytes] | None = None) -> None:
        """Append a record, and write files that belong to it; `files` are contents by relative path."""
        with self._lock:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, content in (files or {}).items():
                place = self.folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            self._log.append(json.dumps(_finite(record), allow_nan=False).encode() + b"\n")
            if self._appended is not None:
                self._appended += 1

    def flush(self) -> None:
        """Hand what was appended to the system."""
        with self._lock:
            self._log.flush()

    def close(self) -> None:
        """Flush and close; a further record opens the file again."""
        with self._lock:
            self._log.close()

    def read(self, limit: int) -> tuple[list[Record], int]:
        """Return at most `limit` whole records that were not sent, and the offset after them.

        A line that is no record is one of the kind `damaged`.
        """
        with contextlib.suppress(OSError):
            self.flush()
        lines = list(islice(whole_lines(self.file, self.sent.offset), limit))
        return [parse(line) for line in lines], self.sent.offset + sum(map(len, lines))

    def count(self) -> int:
        """Return how many records wait; the file is read for it once at most."""
        self.refresh()
        with self._lock:
            if self._appended is None:
                with contextlib.suppress(OSError):
                    self._log.flush()
                self._appended = self._lines()
            return max(0, self._appended - self.sent.records)

    def without_repeats(self, record: Record) -> Record | None:
        """Return what of a record was not sent before a resume; None if all of it was."""
        fresh = {name for kind, name, step in entries(record) if (kind, name, step) not in self._repeats}
        if record["kind"] == "metrics":
            values = {name: value for name, value in record["values"].items() if name in fresh}
            return {**record, "values": values} if values else None
        return record if fresh or "step" not in record else None

    def acknowledge(self, records: int, offset: int) -> None:
        """Note that so many records, up to an offset, were handed over."""
        self.sent.offset = offset
        self.sent.records += records
        self.write_sent()

    def confirm(self, lines: int) -> None:
        """Note that what was handed over arrived, as so many lines of the run, and remove its files."""
        begin, end = self.sent.confirmed, self.sent.offset
        self.sent.confirmed, self.sent.confirmed_records = self.sent.offset, self.sent.records
        self.sent.lines += lines
        self.write_sent()
        for record in self._between(begin, end):
            if not fault(record):
                with contextlib.suppress(StorageError, OSError):  # it was set aside, or is gone
                    if place := file_of(record, self.folder):
                        place.unlink(missing_ok=True)

    def set_aside(self, record: Record, reason: str) -> Path:
        """Keep a record that cannot be sent in a file of its own, with the reason, and return where."""
        place = GrowingFile(self.set_aside_file)
        place.append(json.dumps({"reason": reason, "record": record}).encode() + b"\n")
        place.close()
        return place.path

    def count_set_aside(self) -> int:
        """Return how many records were set aside."""
        return _lines_of(self.set_aside_file)

    def go_back(self) -> None:
        """Take what is not confirmed for not sent."""
        if self.sent.offset != self.sent.confirmed:
            self.sent.offset, self.sent.records = self.sent.confirmed, self.sent.confirmed_records
            self.write_sent()

    def cut(self, size: int, checksum: str | None = None) -> str:
        """Go back to `size` bytes; what arrived after that is not sent again. Return what else is not as it was.

        Raises:
            StorageError: there is something in the place of the records that is no file.
            OSError: they cannot be read or cut.
        """
        with self._lock:
            self._took_back = self.sent.offset > size
            self._read_repeats()
            self._remember(self._repeats.union(*map(entries, self._between(size, self.sent.confirmed))))
            difference = self._log.go_back({"size": size, "xxh3": checksum})
            size = self._size()
            self._appended = self._lines()
        if self.sent.offset > size:
            self.sent.offset, self.sent.records = size, self._appended
            if self.sent.confirmed > size:
                self.sent.confirmed, self.sent.confirmed_records = size, self._appended
            self.write_sent()
        return difference

    def adopt(self, run: str) -> None:
        """Go on in a run that this spool knows nothing of, if it does not know its own."""
        if run and not self.sent.id and not self.sent.continues:
            self.sent.id, self.sent.lines = run, UNKNOWN
            self.write_sent()

    def branch(self) -> None:
        """Go on in a new run, linked to the one before, if that has something that the cut took back."""
        if self._took_back:
            self._remember(set())
            self.sent = replace(self.sent, lines=0, id="", token=secrets.token_hex(8), continues=self.sent.id)
            self.write_sent()

    def refresh(self) -> None:
        """Read `sent.json` again, which a sender in another process writes; what is wrong with it is said once."""
        sent, problem = read_sent(self.folder)
        if sent is not None:
            self.sent = sent
        size = self._size()
        if self.sent.offset > size:
            problem = f"{self.folder / SENT} says that {self.sent.offset} bytes were sent, and there are {size}"
            lines = self._lines()
            self.sent.offset, self.sent.records = size, lines
            self.sent.confirmed = min(self.sent.confirmed, size)
            self.sent.confirmed_records = min(self.sent.confirmed_records, lines)
        elif problem and sent is None:
            problem += "; so nobody knows what was sent, and all of it goes into a new run"
        if problem and problem not in self._said:
            self._said.add(problem)
            log.warning("%s", problem)

    def write_sent(self) -> None:
        """Write `sent.json`, replaced as a whole."""
        write_sent(self.folder, self.sent)

    def _read_repeats(self) -> None:
        file = self.folder / _REPEATS
        try:
            self._repeats = {(str(kind), str(name), int(step)) for kind, name, step in read_note(file)}
        except FileNotFoundError:  # nothing was taken back
            self._repeats = set()
        except (OSError, ValueError, TypeError, StorageError) as error:
            self._repeats = set()
            log.warning("%s is damaged (%s): what was sent before a resume may arrive a second time", file, error)

    def _remember(self, repeats: set[Entry]) -> None:
        if repeats == self._repeats:
            return
        self._repeats = repeats
        if repeats:
            write_note(self.folder / _REPEATS, sorted(repeats))
        else:
            (self.folder / _REPEATS).unlink(missing_ok=True)

    def _between(self, begin: int, end: int) -> Iterator[Record]:
        """Yield the records between two offsets; none when the first is not the smaller."""
        if begin >= end:
            return
        for line in whole_lines(self.file, begin):
            yield parse(line)
            begin += len(line)
            if begin >= end:
                return

    def _size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    def _lines(self) -> int:
        return _lines_of(self.file)


def _lines_of(file: Path) -> int:
    """Return how many whole lines a file has; none when it is absent."""
    return sum(1 for _ in whole_lines(file))


def _finite(value: Any) -> Any:
    """Return a value with NaN and infinities as text, since JSON has no numbers for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value if isinstance(value, int | float | str | None) else str(value)
