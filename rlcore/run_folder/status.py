"""The status of a run: writing and reading `status.json`, and correcting it where the process is dead."""

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
# types of the entries that commands and users read; an entry of another type is left out
_ENTRIES: Final = {"state": str, "reason": str, "frames": int, "updates": int, "losses": dict, "time": str}
RunState = Literal["running", "done", "stopped-resumable", "failed-resumable", "failed"]


class Status:
    """Writes `status.json`, so that a reader finds the old status or the new and never a part.

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
        evaluation: Mapping[str, float | None] | None = None,
    ) -> None:
        """Write the status.

        Args:
            state: of the run.
            now: frames or updates so far.
            reason: why the run is in this state.
            checkpoint: folder of the latest checkpoint.
            exact: whether a resume gives the bits of an uninterrupted run.
            losses: number of losses so far, by cause.
            clock: `frames` or `updates`; the name of the entry with `now`.
            evaluation: the last one: `now`, `mean_return` and `episodes`.

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
            "evaluation": None if evaluation is None else dict(evaluation),
            "pid": os.getpid(),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(content, indent=1) + "\n"
        try:
            replace(self._file, text, durable=True)
        except OSError as error:
            self._write_over(text, error)

    def _write_over(self, text: str, reason: OSError) -> None:
        """Write into the file of the old status, which has its room on a full disk already.

        Raises:
            StorageError: there is no old status, or the room is too small.
        """
        try:
            with self._file.open("r+") as stream:
                stream.write(text)
                stream.truncate()
        except OSError:
            raise StorageError(f"{self._file} cannot be written: {reason}") from reason


def read_status(folder: Path) -> dict[str, Any]:
    """Return the entries of `status.json` with the right type; empty where it cannot be read.

    A status `running` without a process in the folder is corrected, see `as_it_is`.
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
    entries = {key: value for key, value in status.items() if isinstance(value, _ENTRIES.get(key, object))}
    return as_it_is(folder, entries)


def reached_by(status: Mapping[str, Any]) -> int:
    """Return the frames or updates of a run by its status; 0 where it has neither."""
    return int(status.get("frames", status.get("updates", 0)))


def as_it_is(folder: Path, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a run; of a run that died while `running`, the status `failed` or `failed-resumable`.

    Args:
        folder: of the run.
        status: content of its file.
    """
    if status.get("state") != "running" or in_use(folder) is not False:
        return dict(status)
    try:
        has_checkpoint = bool(committed(folder / CHECKPOINTS))
    except StorageError:  # a resume may fail as this does, so it is not promised
        has_checkpoint = False
    state = "failed-resumable" if has_checkpoint else "failed"
    return {**status, "state": state, "reason": _NO_WORD}
