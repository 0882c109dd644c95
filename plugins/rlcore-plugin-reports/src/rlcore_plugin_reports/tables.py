"""Whether the tables of a run folder are what its newest checkpoint says they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints import CheckpointEntry, read_state, scan
from rlcore.errors import StorageError
from rlcore.files import GrowingFile
from rlcore.run_folder import CHECKPOINTS

# of every run: a row per episode
EVALUATIONS: Final = "evaluations.csv"
_STATE: Final = "state.json"
# those of a logger that reports read; it says where each was by these names
_OF_LOGGERS: Final = {"metrics", "timings", "media"}


def differences(run: Path) -> list[str]:
    """Return a sentence for each table that is not as it was at the newest checkpoint.

    What came after the checkpoint is not known, and neither is anything of a run without one.

    Args:
        run: its folder; it may be training.
    """
    try:
        entries = scan(run / CHECKPOINTS).entries
    except StorageError as error:
        return [f"{error}; whether the tables of the run are whole is not known"]
    if not entries:
        return []
    return list(_compared(run, max(entries, key=lambda entry: str(entry.manifest["time"]))))


def _compared(run: Path, entry: CheckpointEntry) -> Iterator[str]:
    try:
        positions = list(_positions(entry))
    except (StorageError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if entry.path.is_dir():  # otherwise its run has removed it just now
            place = entry.path / _STATE
            yield f"{place} cannot be read ({error}); whether the tables of the run are whole is not known"
        return
    for name, position in positions:
        try:
            if difference := GrowingFile(run / name).differs_from(position):
                yield f"{difference} ({entry.place})"
        except (StorageError, OSError) as error:
            yield f"{run / name} cannot be read: {error}"


def _positions(entry: CheckpointEntry) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name, length and checksum of each table; an old checkpoint has no checksums."""
    state = read_state(entry)
    evaluations = state.get("evaluations", {})
    yield EVALUATIONS, {"size": evaluations.get("written", 0), "xxh3": evaluations.get("xxh3") or None}
    for name, part in state.items():
        position = (part.get("position") or {}) if name.startswith("logger.") else {}
        for table in sorted(position.keys() & _OF_LOGGERS):
            yield f"{table}.csv", {"size": position[table], "xxh3": position.get("xxh3", {}).get(table)}
