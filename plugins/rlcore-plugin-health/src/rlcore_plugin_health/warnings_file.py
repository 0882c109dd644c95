"""What a run was warned of in its course: `health.json`, replaced as a whole each time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

from rlcore.errors import StorageError
from rlcore.files import read_plain, replace

HEALTH_FILE: Final = "health.json"
# what is larger was not written here
MOST_BYTES: Final = 1 << 20


class Warned(TypedDict):
    """A warning.

    Attributes:
        frames: when it was given, on the clock of the run.
        check: name of what found it.
        message: in words.
    """

    frames: int
    check: str
    message: str


_TYPES: Final = {"frames": int, "check": str, "message": str}


def write_warnings(folder: Path, warned: Sequence[Warned]) -> None:
    """Replace the file by these warnings; where there are none and no file either, none is made.

    Args:
        folder: of the run.
        warned: all warnings, in order.

    Raises:
        OSError: it cannot be written; the one before is as it was.
    """
    file = folder / HEALTH_FILE
    if warned or file.exists():
        replace(file, json.dumps(list(warned), indent=2) + "\n", durable=True)


def read_warnings(folder: Path) -> list[Warned]:
    """Return the warnings of a run, in order; those that are complete, and none where the file cannot be read."""
    try:
        entries = json.loads(read_plain(folder / HEALTH_FILE, MOST_BYTES))
    except (OSError, ValueError, RecursionError, StorageError):
        return []
    return [warned for warned in entries if _is_complete(warned)] if isinstance(entries, list) else []


def _is_complete(entry: Any) -> bool:
    return isinstance(entry, dict) and all(type(entry.get(key)) is kind for key, kind in _TYPES.items())
