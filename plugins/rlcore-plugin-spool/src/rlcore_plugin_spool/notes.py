"""The notes beside the records of a spool, each with a checksum: how far they were sent, and what comes again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.errors import StorageError
from rlcore.files import open_log, replacing

UNKNOWN: Final = -1
SENT: Final = "sent.json"
# the same once more: a position that is lost would let everything be sent a second time
COPY: Final = "sent-copy.json"
_CHECKSUM: Final = "xxh3"
# of a note, so that a device in its place is not read without end
_MOST_BYTES: Final = 1 << 30


@dataclass
class Sent:
    """How far the records of a spool were sent.

    Attributes:
        offset: bytes of the file that were handed over.
        records: how many records that is.
        confirmed: bytes that have arrived, as far as the server said; what was handed over beyond that may be lost.
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


def read_sent(folder: Path) -> tuple[Sent | None, str]:
    """Return how far the spool in a folder was sent, None when that is not known, and what is wrong with the note."""
    problems: list[str] = []
    for name in (SENT, COPY):
        try:
            return _sent(read_note(folder / name)), "; ".join(problems)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, StorageError) as error:
            problems.append(f"{folder / name} is damaged ({error})")
    return None, "; ".join(problems)


def write_sent(folder: Path, sent: Sent) -> None:
    """Write how far the spool was sent, each copy replaced as a whole."""
    for name in (SENT, COPY):
        write_note(folder / name, asdict(sent))


def read_note(file: Path) -> Any:
    """Return what a note says; one of an earlier version has no checksum.

    Raises:
        ValueError: it is damaged.
        StorageError: it is no plain file.
        OSError: it cannot be read.
    """
    with open_log(file) as stream:
        text = stream.read(_MOST_BYTES)
    try:
        note = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is no note") from error
    if isinstance(note, dict) and _CHECKSUM in note:
        if note.keys() != {"note", _CHECKSUM} or note[_CHECKSUM] != _checksum(note["note"]):
            raise ValueError("its checksum is another")
        return note["note"]
    return note


def write_note(file: Path, content: Any) -> None:
    """Write a note, replaced as a whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # it comes too often to wait for the disk; a note that a power cut takes is found out by its checksum
    with replacing(file) as place:
        place.write_text(json.dumps({"note": content, _CHECKSUM: _checksum(content)}), encoding="utf-8")


def _checksum(content: Any) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())


def _sent(note: Any) -> Sent:
    """Return a note as a position.

    Raises:
        ValueError: it cannot be one.
    """
    if not isinstance(note, dict):
        raise ValueError("it is no position")
    entries = {field.name: note.get(field.name) for field in fields(Sent)}
    texts = ("id", "token", "continues")
    for name, value in entries.items():
        if name in texts:
            fits = isinstance(value, str)
        else:
            least = UNKNOWN if name == "lines" else 0
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not fits:
            raise ValueError(f"{name} is {value!r:.100}")
    return Sent(**entries)  # type: ignore[arg-type]
