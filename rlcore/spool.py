"""A file of records that wait to be sent to a server, with a note of how far they were sent."""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TextIO

Record = dict[str, Any]
Entry = tuple[str, str, int]

UNKNOWN: Final = -1
_RECORDS: Final = "records.jsonl"
_SENT: Final = "sent.json"
_REPEATS: Final = "repeats.json"


@dataclass
class Sent:
    """How far the records of a spool were sent.

    Attributes:
        offset: bytes of the file that were handed to the back end.
        records: how many records that is.
        confirmed: bytes of which the back end said that they arrived; what was handed over beyond that may be lost.
        confirmed_records: how many records that is.
        lines: how many records with a step the run had on the server when the first that is not confirmed was sent.
        id: of the run, as the server calls it; empty before the first contact.
        token: made for the run, to find it when its id was lost on the way back.
        continues: id of the run that this one goes on from; empty for the first.
    """

    offset: int = 0
    records: int = 0
    confirmed: int = 0
    confirmed_records: int = 0
    lines: int = 0
    id: str = ""
    token: str = ""
    continues: str = ""


class Spool:
    """Records in a folder: `records.jsonl`, one per line, files beside it, and `sent.json`.

    After a resume that went back behind what was sent, `repeats.json` has what will come a second time.
    One thread appends and another reads and acknowledges.

    Args:
        folder: made with the first record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / _RECORDS
        self._stream: TextIO | None = None
        self._lock = threading.Lock()
        self._appended: int | None = None
        self.sent = Sent(token=secrets.token_hex(8))
        self._repeats: set[Entry] = set()
        self._took_back = False
        self.refresh()
        self._read_repeats()

    @property
    def size(self) -> int:
        """Bytes that were appended."""
        with self._lock:
            self._flush()
            return self._size()

    @property
    def waiting(self) -> bool:
        """Whether something was appended and not handed to the back end."""
        self.refresh()
        return self.size > self.sent.offset

    @property
    def unconfirmed(self) -> int:
        """How many records were handed to the back end, and are not confirmed."""
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
            if self._stream is None:
                self._repair()
                self._stream = self._file.open("a")
            self._stream.write(json.dumps(_finite(record), allow_nan=False) + "\n")
            if self._appended is not None:
                self._appended += 1

    def flush(self) -> None:
        """Hand what was appended to the system."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Flush and close; a further record opens the file again."""
        with self._lock:
            self._close()

    def read(self, limit: int) -> tuple[list[Record], int]:
        """Return at most `limit` whole records that were not sent, and the offset after them."""
        self.flush()
        records: list[Record] = []
        offset = self.sent.offset
        if not self._file.exists():
            return records, offset
        with self._file.open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n") or len(records) == limit:
                    break
                records.append(json.loads(line))
                offset += len(line)
        return records, offset

    def count(self) -> int:
        """Return how many records wait; the file is read for it once at most."""
        self.refresh()
        with self._lock:
            if self._appended is None:
                self._flush()
                self._appended = self._lines()
            return max(0, self._appended - self.sent.records)

    def without_repeats(self, record: Record) -> Record | None:
        """Return what of a record was not sent before a resume; None if all of it was."""
        fresh = {name for kind, name, step in _entries(record) if (kind, name, step) not in self._repeats}
        if record["kind"] == "metrics":
            values = {name: value for name, value in record["values"].items() if name in fresh}
            return {**record, "values": values} if values else None
        return record if fresh or "step" not in record else None

    def acknowledge(self, records: int, offset: int) -> None:
        """Note that so many records, up to an offset, were handed to the back end."""
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
            if "file" in record:
                (self.folder / record["file"]).unlink(missing_ok=True)

    def go_back(self) -> None:
        """Take what is not confirmed for not sent."""
        if self.sent.offset != self.sent.confirmed:
            self.sent.offset, self.sent.records = self.sent.confirmed, self.sent.confirmed_records
            self.write_sent()

    def cut(self, size: int) -> None:
        """Go back to `size` bytes; what arrived after that is not sent again."""
        with self._lock:
            self._close()
            size = min(size, self._size())
            self._took_back = self.sent.offset > size
            self._read_repeats()
            self._remember(self._repeats.union(*map(_entries, self._between(size, self.sent.confirmed))))
            if self._file.exists():
                os.truncate(self._file, size)
            self._appended = self._lines()
        if self._took_back:
            self.sent.offset, self.sent.records = size, self._appended
            if self.sent.confirmed > size:
                self.sent.confirmed, self.sent.confirmed_records = size, self._appended
            self.write_sent()

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
        """Read `sent.json` again, which a sender in another process writes."""
        try:
            found = json.loads((self.folder / _SENT).read_text())
            self.sent = Sent(**{field.name: found[field.name] for field in fields(Sent)})
        except (OSError, ValueError, TypeError, KeyError):  # not written yet
            return

    def write_sent(self) -> None:
        """Write `sent.json`, replaced as a whole."""
        self._write(_SENT, asdict(self.sent))

    def _read_repeats(self) -> None:
        try:
            self._repeats = {
                (kind, name, step) for kind, name, step in json.loads((self.folder / _REPEATS).read_text())
            }
        except (OSError, ValueError, TypeError):  # nothing was taken back
            self._repeats = set()

    def _remember(self, repeats: set[Entry]) -> None:
        if repeats == self._repeats:
            return
        self._repeats = repeats
        if repeats:
            self._write(_REPEATS, sorted(repeats))
        else:
            (self.folder / _REPEATS).unlink(missing_ok=True)

    def _write(self, name: str, content: Any) -> None:
        """Write a file, replaced as a whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{name}-{secrets.token_hex(3)}"
        temporary.write_text(json.dumps(content))
        os.replace(temporary, self.folder / name)

    def _between(self, begin: int, end: int) -> Iterator[Record]:
        """Yield the records between two offsets; none when the first is not the smaller."""
        if begin >= end or not self._file.exists():
            return
        with self._file.open("rb") as stream:
            stream.seek(begin)
            while stream.tell() < end and (line := stream.readline()):
                yield json.loads(line)

    def _repair(self) -> None:
        """Cut off a last line that a crash left incomplete."""
        if not self._file.exists():
            return
        content = self._file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            os.truncate(self._file, whole)

    def _size(self) -> int:
        return self._file.stat().st_size if self._file.exists() else 0

    def _lines(self) -> int:
        if not self._file.exists():
            return 0
        with self._file.open("rb") as stream:
            return sum(line.endswith(b"\n") for line in stream)

    def _flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _entries(record: Record) -> Iterable[Entry]:
    """Return what tells the contents of a record from all others of a run: kind, name and step of each."""
    if "step" not in record:
        return []
    names = record["values"] if record["kind"] == "metrics" else [record["name"]]
    return [(record["kind"], name, record["step"]) for name in names]


def _finite(value: Any) -> Any:
    """Return a value with NaN and infinities as text, since JSON has no numbers for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value if isinstance(value, int | float | str | None) else str(value)
