"""Where a run stands: `status.json`, replaced as a whole each time, and what it says of a process that is gone."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from rlcore.checkpoints.manifest import committed
from rlcore.errors import StorageError
from rlcore.files.lock import in_use
from rlcore.files.plain_files import read_plain
from rlcore.files.replacement import replace
from rlcore.run_folder.folder import CHECKPOINTS, MOST_BYTES

_NO_WORD: Final = "its process ended without a word: it was killed, or something in it called os._exit"

STATUS_FILE: Final = "status.json"
# of the status: what people and commands count on
_ENTRIES: Final = {"state": str, "reason": str, "frames": int, "updates": int, "losses": dict, "time": str}
RunState = Literal["running", "done", "stopped-resumable", "failed-resumable", "failed"]


class Status:
    """Writes `status.json`, replaced as a whole each time.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / STATUS_FILE

    def write(
        self,
        state: RunState,
        now: int,
        reason: str = "",
        checkpoint: Path | None = None,
        exact: bool | None = None,
        losses: Mapping[str, int] | None = None,
        clock: str = "frames",
    ) -> None:
        """Say where the run stands.

        Args:
            state: of the run.
            now: how far it is, on its clock.
            reason: why it is so.
            checkpoint: folder of the latest.
            exact: whether a resume gives the bits of an uninterrupted run.
            losses: what was lost so far, by cause.
            clock: which its length is counted in; the entry with `now` is called so.

        Raises:
            StorageError: the file cannot be written.
        """
        content = {
            "state": state,
            "reason": reason,
            clock: now,
            "checkpoint": checkpoint.name if checkpoint else None,
            "exact": exact,
            "losses": dict(losses or {}),
            "pid": os.getpid(),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(content, indent=1) + "\n"
        try:
            replace(self._file, text, durable=True)
        except OSError as error:
            self._write_over(text, error)

    def _write_over(self, text: str, reason: OSError) -> None:
        """Write into the place of the old status; a disk that is full has that much room for it.

        Raises:
            StorageError: there is no old status, or too little room even so.
        """
        try:
            with self._file.open("r+") as stream:
                stream.write(text)
                stream.truncate()
        except OSError:
            raise StorageError(f"{self._file} cannot be written: {reason}") from reason


def read_status(folder: Path) -> dict[str, Any]:
    """Return the entries of `status.json` that have the type they are written with; none where it cannot be read.

    Where it says that the run is running and no process works in the folder any more, it says how the run ended.
    """
    try:
        status = json.loads(read_plain(folder / STATUS_FILE, MOST_BYTES))
    except (OSError, ValueError, RecursionError, StorageError):
        return {}
    if not isinstance(status, dict):
        return {}
    losses = status.get("losses")
    if isinstance(losses, dict):
        status["losses"] = {cause: count for cause, count in losses.items() if type(count) is int}
    kept = {key: value for key, value in status.items() if isinstance(value, _ENTRIES.get(key, object))}
    return as_it_is(folder, kept)


def reached_by(status: Mapping[str, Any]) -> int:
    """Return how far a run was by its status, on its clock: frames, or updates; 0 where it does not say."""
    return int(status.get("frames", status.get("updates", 0)))


def as_it_is(folder: Path, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a run, with how it ended where its process could not say so.

    Args:
        folder: of the run.
        status: what its file says.
    """
    if status.get("state") != "running" or in_use(folder) is not False:
        return dict(status)
    try:
        has_checkpoint = bool(committed(folder / CHECKPOINTS))
    except StorageError:  # nobody knows, so nothing is promised
        has_checkpoint = False
    state = "failed-resumable" if has_checkpoint else "failed"
    return {**status, "state": state, "reason": _NO_WORD}
