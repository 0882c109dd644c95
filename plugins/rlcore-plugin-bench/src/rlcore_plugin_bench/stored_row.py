"""A finished row as it is stored: score, curve, what it was made of, how, with what, and on which machine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.files import replacing

_FORMAT: Final = 1


@dataclass(frozen=True)
class Curve:
    """Returns over frames, or over updates; all lists are of one length.

    Attributes:
        at: frames or updates, increasing.
        returns: mean return at each.
        seconds: of training until then; None where it is not known.
    """

    at: list[int]
    returns: list[float]
    seconds: list[float | None]


@dataclass(frozen=True)
class StoredRow:
    """A finished row.

    Attributes:
        task: name of the task.
        method: name of the method.
        seed: of the run.
        score: mean return, as the task says.
        frames: of training, or updates; None where it is not known.
        clock: `frames` or `updates`.
        seconds: of training.
        wall: seconds of its processes from start to end.
        curve: None where none was recorded.
        identity: hash of `inputs`; empty where they were not recorded.
        inputs: what the row depends on, by dotted key: config or command, checksums, versions.
        command: as it was run.
        versions: of packages, by name.
        machine: name of the CPU, usable cores, threads.
        also: further figures that were recorded.
    """

    task: str
    method: str
    seed: int
    score: float
    frames: int | None = None
    clock: str = "frames"
    seconds: float | None = None
    wall: float | None = None
    curve: Curve | None = None
    identity: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    also: dict[str, Any] = field(default_factory=dict)


def write_row(path: Path, row: StoredRow) -> None:
    """Write a row whole, or not at all; equal rows are equal bytes."""
    text = json.dumps({"format": _FORMAT, **asdict(row)}, sort_keys=True, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as place:
        place.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_row(path: Path) -> StoredRow | None:
    """Return a stored row, or None where there is none.

    Raises:
        ConfigError: the file is none of a row.
    """
    try:
        values = json.loads(gzip.decompress(path.read_bytes()))
        return _row(values)
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is no row of a benchmark ({error}); remove it, and run it again") from error


def _row(values: Mapping[str, Any]) -> StoredRow:
    known = {key: value for key, value in values.items() if key != "format"}
    if values["format"] != _FORMAT:
        raise ValueError(f"format {values['format']}, and this rlcore reads {_FORMAT}")
    curve = known.pop("curve")
    return StoredRow(**known, curve=None if curve is None else Curve(**curve))
