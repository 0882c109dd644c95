"""The manifest of a checkpoint: reading and checking it, and listing the checkpoints of a folder.

Nothing here imports torch, so that `rlcore ckpt` lists and verifies without its delay. `store.py` writes and loads.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.checkpoints.migrations import migrated_manifest
from rlcore.errors import StorageError
from rlcore.files.durable import describe
from rlcore.files.plain_files import plain_file, read_plain
from rlcore.types.progress import clock_of, reached, unit_of

log = logging.getLogger(__name__)

FORMAT: Final = 2
MANIFEST: Final = "manifest.json"
STATE: Final = "state.json"
# these files are read whole into memory. Saving refuses larger ones, so that every saved checkpoint can be loaded
MOST_BYTES: Final[Mapping[str, int]] = {MANIFEST: 16 << 20, STATE: 256 << 20}
# bounds the memory of parsing: an empty list takes 2 bytes in a file and 64 in memory
MOST_VALUES: Final = 4_000_000
_CHECKSUM: Final = "checksum"


class NewerFormatError(StorageError):
    """Says that a checkpoint is whole, and that only a newer rlcore can read it."""


@dataclass(frozen=True)
class CheckpointEntry:
    """A committed checkpoint: its folder, its frame and its manifest."""

    path: Path
    frames: int
    manifest: Mapping[str, Any] = field(repr=False)

    @property
    def reached(self) -> int:
        """Frames or updates of the run at the save, whichever its length is counted in."""
        return reached(self.manifest["progress"])

    @property
    def clock(self) -> str:
        """Unit of the length of the run: `frames` or `updates`."""
        return clock_of(self.manifest["progress"])

    @property
    def unit(self) -> str:
        """Singular of the clock: `frame` or `update`."""
        return unit_of(self.clock)

    @property
    def place(self) -> str:
        """Moment of the save for messages, such as `frame 1000`."""
        return f"{self.unit} {self.reached}"

    @property
    def evaluation(self) -> float | None:
        """Mean return of the evaluation at this frame; None without one, or where it is not finite."""
        value = self.manifest["evaluation"]
        return float(value) if value is not None and math.isfinite(value) else None

    @property
    def size(self) -> int:
        """Bytes of the files on disk, without the manifest."""
        return sum(int(file["size"]) for file in self.manifest["files"].values())


@dataclass
class Listing:
    """The checkpoints of a folder, readable and unreadable.

    Attributes:
        entries: the readable checkpoints, oldest first.
        problems: a message for each unreadable checkpoint.
        newer: the problems that a newer rlcore would not have.
    """

    entries: list[CheckpointEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)


def scan(folder: Path) -> Listing:
    """Read the manifest of every checkpoint in a folder; a folder that is absent holds none.

    Raises:
        StorageError: the folder cannot be listed.
    """
    listing = Listing()
    for path in committed(folder):
        try:
            manifest = read_manifest(path)
        except StorageError as error:
            if os.path.lexists(path):  # else its run has pruned it since the folder was listed
                listing.problems.append(str(error))
                listing.newer += [str(error)] if isinstance(error, NewerFormatError) else []
            continue
        listing.entries.append(CheckpointEntry(path, manifest["progress"]["frames"], manifest))
    listing.entries.sort(key=order)
    return listing


def order(entry: CheckpointEntry) -> tuple[Any, ...]:
    """Return the sort key of a checkpoint: how far the run was, then the time of the save, then the name."""
    return (entry.reached, entry.manifest["time"], entry.path.name)


def committed(folder: Path) -> list[Path]:
    """Return every path in a folder that is named like a committed checkpoint, whole or damaged.

    Raises:
        StorageError: the folder is there and cannot be listed.
    """
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"checkpoints in {folder} cannot be listed: {error}") from error
    # `save` begins the names with digits; unfinished saves, removed checkpoints and `latest` begin otherwise
    return [folder / name for name in names if name[0] in "0123456789" and "-" in name]


def best(entries: Iterable[CheckpointEntry], by: tuple[str, str] | None = None) -> CheckpointEntry | None:
    """Return the checkpoint with the best evaluation, the latest of equals, or None when none was evaluated.

    An evaluation before the first update does not count: it rates an untrained policy.

    Args:
        entries: the checkpoints to choose from.
        by: the key of a number in the metadata, used instead of the evaluation, with `min` or `max` for the best.
    """
    rated = [(_rating(entry, by), *order(entry), entry) for entry in entries]
    comparable = [row for row in rated if row[0] is not None]
    return max(comparable, key=lambda row: row[:-1])[-1] if comparable else None


def _rating(entry: CheckpointEntry, by: tuple[str, str] | None) -> float | None:
    """Return the number that is largest for the best checkpoint; None where the checkpoint has none."""
    if by is None:
        return entry.evaluation if entry.manifest["progress"].get("updates", 1) else None
    key, mode = by
    value = (entry.manifest.get("metadata") or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if mode == "max" else -float(value)


def render(manifest: Mapping[str, Any]) -> str:
    """Return the text of a manifest, with its checksum last.

    Raises:
        StorageError: it is larger than `read_manifest` accepts.
    """
    plain = {key: value for key, value in manifest.items() if key != _CHECKSUM}
    text = json.dumps(plain | {_CHECKSUM: _checksum(plain)})
    if len(text) > MOST_BYTES[MANIFEST]:
        raise StorageError(f"{MANIFEST} would have {len(text):,} bytes, more than {MOST_BYTES[MANIFEST]:,}")
    return text


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint folder.

    Raises:
        StorageError: it is missing, damaged, of a newer format, or copied from another folder.
    """
    try:
        if path.is_symlink():
            raise StorageError("the folder is a link")
        raw, manifest = read_json(path / MANIFEST)
        checksum = manifest.pop(_CHECKSUM)
        same_values = checksum == _checksum(manifest)
        # the checksum is over values, and JSON has several spellings of one value: compare the bytes too
        same_bytes = same_values and render(manifest).encode() == raw
        version = manifest["format"]
    except Exception as error:  # hostile JSON raises anything: RecursionError, OverflowError, AttributeError
        raise StorageError(f"{path} is no checkpoint of rlcore: its {MANIFEST} cannot be read ({error})") from None
    if not same_values or not same_bytes:
        raise StorageError(f"checkpoint {path} is damaged: the checksum of {MANIFEST} does not match")
    if type(version) is int and version > FORMAT:
        raise NewerFormatError(
            f"checkpoint {path} has format {version}, this rlcore reads up to {FORMAT}; update rlcore"
        )
    try:
        manifest = migrated_manifest(manifest, FORMAT)
    except Exception as error:  # a migration raises anything where the checksum is right and the entries are made up
        raise StorageError(f"{path} is no checkpoint of format {version!r}: {error!r}") from error
    _check_entries(path, manifest)
    return manifest


def verify(entry: CheckpointEntry, moved: Callable[[], object] = lambda: None) -> list[str]:
    """Compare every file of a checkpoint with its manifest; return the names of files that the manifest does not list.

    Args:
        entry: the checkpoint.
        moved: called after every MiB, so that the watchdog sees a large file move.

    Raises:
        StorageError: a file is missing, is not a plain file, or has another size or checksum.
    """
    files = entry.manifest["files"]
    for name, expected in files.items():
        try:
            if Path(name).name != name:
                raise StorageError("the name leaves the folder")
            with plain_file(entry.path / name) as stream:
                size = os.fstat(stream.fileno()).st_size
                actual = {"size": size}
                if size == expected["size"]:  # a wrong size is enough; hashing takes seconds for each GB
                    actual = describe(stream, moved)
        except (StorageError, OSError, ValueError) as error:
            raise StorageError(
                f"checkpoint {entry.path} is damaged: {name!r} is missing or not a plain file ({error})"
            ) from None
        if actual != expected:
            raise StorageError(f"checkpoint {entry.path} is damaged: {name!r} is {actual}, expected {expected}")
    return sorted(path.name for path in entry.path.iterdir() if path.name not in (MANIFEST, *files))


def read_json(path: Path) -> tuple[bytes, Any]:
    """Return the content of `manifest.json` or `state.json`, as bytes and parsed.

    Raises:
        StorageError: it is no plain file, or larger than `save` allows.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    raw = read_plain(path, MOST_BYTES[path.name])
    check_values(raw)
    return raw, json.loads(raw)


def read_state(entry: CheckpointEntry) -> Any:
    """Return the content of `state.json`: the states of a checkpoint with names in the place of tensors.

    Raises:
        StorageError: it is damaged, or no plain file.
        OSError: it cannot be read.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    raw, state = read_json(entry.path / STATE)
    if xxhash.xxh3_128_hexdigest(raw) != entry.manifest["files"][STATE]["xxh3"]:
        raise StorageError("it is damaged")
    return state


def check_values(raw: bytes) -> None:
    """Refuse JSON of so many values that parsing it would take many times its size in memory.

    Raises:
        StorageError: it has more than `MOST_VALUES`.
    """
    # counted in the bytes, before anything is parsed: too high where strings hold these characters, never too low
    values = sum(map(raw.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        raise StorageError(f"it holds about {values:,} values, more than {MOST_VALUES:,}")


def _check_entries(path: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a manifest with an entry of a wrong type, so that its readers need no checks."""
    for key, fits in _ENTRIES.items():
        if key not in manifest or not fits(manifest[key]):
            raise StorageError(
                f"{path} is no checkpoint of rlcore: the entry {key!r} of its {MANIFEST} is missing or of a wrong type"
            )
    if manifest["id"] != path.name:
        raise StorageError(
            f"checkpoint {path} is a copy or was renamed: it is {manifest['id']!r} by its {MANIFEST}; give the folder "
            "that name again, or move it away"
        )


def _checksum(manifest: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(manifest, sort_keys=True).encode())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _count(value: Any) -> bool:
    # `type`, as a bool is an instance of int
    return type(value) is int and 0 <= value < 2**63


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(_count(item) for item in value.values())


def _clocks(value: Any) -> bool:
    if not isinstance(value, dict) or clock_of(value) not in ("frames", "updates"):
        return False
    counts = {name: count for name, count in value.items() if name != "clock"}
    return _counts(counts) and {"frames", clock_of(value)} <= counts.keys()


def _files(value: Any) -> bool:
    return isinstance(value, dict) and STATE in value and MANIFEST not in value and all(map(_file, value.values()))


def _file(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.keys() == {"size", "xxh3"} and _count(value["size"]) and _text(value["xxh3"])
    )


def _time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


_ENTRIES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "format": lambda value: type(value) is int and value >= 1,
    "id": _text,
    "time": _time,
    "backend": _text,
    "progress": _clocks,
    "evaluation": lambda value: value is None or isinstance(value, float) or _count(value),
    "run_id": _text,
    "config": lambda value: isinstance(value, dict),
    "config_hash": _text,
    "observers": lambda value: isinstance(value, list) and all(map(_text, value)),
    "owners": _texts,
    "versions": _texts,
    "domain": _texts,
    "exact": lambda value: isinstance(value, bool),
    "inexact": lambda value: isinstance(value, list) and all(map(_text, value)),
    "sizes": _counts,
    "digests": _texts,
    "digest": _text,
    "files": _files,
}
