"""The reason why the process of a run failed, from its output and its status."""

from __future__ import annotations

from pathlib import Path

from rlcore.errors import StorageError
from rlcore.files.plain_files import plain_file
from rlcore.run_folder.status import read_status


def last_words(log: Path, begin: int, folder: Path, pid: int | None) -> str:
    """Return the error that a process printed; else the reason in its status, else its last line.

    Args:
        log: the file with its output; earlier processes may have printed into it too.
        begin: size of the file in bytes when the process was started.
        folder: of the run.
        pid: of the process; None where it is not known, so that the status may be of another.

    Returns:
        One line; empty where the process printed nothing and its status has no reason.
    """
    try:
        with plain_file(log) as stream:
            stream.seek(begin)
            lines = stream.read().decode(errors="replace").splitlines()
    except (OSError, StorageError):
        lines = []
    printed = [line.strip() for line in lines if line.strip()]
    errors = [line for line in printed if line.startswith("error: ")]
    return errors[-1] if errors else _reason(folder, pid) or (printed or [""])[-1]


def _reason(folder: Path, pid: int | None) -> str:
    """Return the reason in the status of a run, where this process wrote it and not an earlier one."""
    status = read_status(folder)
    if pid is None or status.get("pid") != pid or not str(status.get("state", "")).startswith("failed"):
        return ""
    return (str(status.get("reason", "")).splitlines() or [""])[0]
