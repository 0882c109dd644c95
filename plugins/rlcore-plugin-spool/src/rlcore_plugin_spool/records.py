"""What the records of a spool are, and which of them can be sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore.files import inside, plain_file

Record = dict[str, Any]
Entry = tuple[str, str, int]

# of a line that is no record; it has `line` instead of everything else
DAMAGED: Final = "damaged"
# of a line that is set aside, which may be of any length
_LONGEST_SHOWN: Final = 10_000


def parse(line: bytes) -> Record:
    """Return the record of a line; one of the kind `damaged` when it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, dict) and isinstance(record.get("kind"), str):
        return record
    return {"kind": DAMAGED, "line": line[:_LONGEST_SHOWN].decode(errors="replace")}


def fault(record: Record) -> str:
    """Return why a record cannot be sent; empty for one that can, apart from its file."""
    kind = record["kind"]
    if kind == DAMAGED:
        return "the line is no record"
    if kind not in _KINDS:
        return f"there is no kind {kind!r:.100}"
    needed = _KINDS[kind] if kind == "hparams" else {**_ALL, **_KINDS[kind]}
    wrong = [key for key, fits in needed.items() if not fits(record.get(key))]
    return f"{', '.join(wrong)} of the {kind} cannot be" if wrong else ""


def file_of(record: Record, folder: Path) -> Path | None:
    """Return where the file of a record is; None for a record without one.

    Args:
        record: of a known kind.
        folder: of the spool.

    Raises:
        StorageError: it names a file that is not one of the spool's own.
    """
    if record["kind"] not in _WITH_FILE:
        return None
    name = record["file"]
    if not isinstance(name, str) or not name.startswith(f"{record['kind']}s/"):
        raise StorageError(f"{name!r:.200} is not among the {record['kind']}s of {folder}")
    return inside(folder, name)


def fault_of_file(record: Record, folder: Path) -> str:
    """Return why the file of a record cannot be sent; empty for one that can, and for a record without a file."""
    try:
        place = file_of(record, folder)
        if place is not None:
            with plain_file(place):
                pass
    except (StorageError, OSError) as error:
        return f"its file cannot be sent: {error}"
    return ""


def entries(record: Record) -> Iterable[Entry]:
    """Return what tells the contents of a record from all others of a run: kind, name and step of each."""
    if "step" not in record or fault(record):
        return []
    names = record["values"] if record["kind"] == "metrics" else [record["name"]]
    return [(record["kind"], name, record["step"]) for name in names]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_or_text(value: Any) -> bool:
    return _number(value) or value in ("nan", "inf", "-inf")


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number_or_text, value))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _values(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_number_or_text, value.values()))


_ALL: Final[Mapping[str, Callable[[Any], bool]]] = {"step": _count, "time": _number}
_KINDS: Final[Mapping[str, Mapping[str, Callable[[Any], bool]]]] = {
    "metrics": {"values": _values},
    "histogram": {"name": _text, "counts": _numbers, "edges": _numbers, "not_finite": _count},
    "image": {"name": _text, "file": _text},
    "video": {"name": _text, "file": _text, "fps": _number},
    "text": {"name": _text, "text": _text},
    "hparams": {"config": lambda value: isinstance(value, Mapping)},
}
_WITH_FILE: Final = ("image", "video")
