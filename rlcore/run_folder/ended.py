"""Why the process of a run failed, as far as what it printed and its status say."""

from __future__ import annotations

from pathlib import Path

from rlcore.errors import StorageError
from rlcore.files.plain_files import plain_file
from rlcore.run_folder.status import read_status


def last_words(log: Path, begin: int, folder: Path, pid: int | None) -> str:
    """Return the error that a process printed; else why its status says that it failed, else the last line it printed.

    Args:
        log: the file that it printed into, in which processes before it may have printed too.
        begin: bytes in the file when it was started.
        folder: of the run.
        pid: of the process; None where it was none of ours.

    Returns:
        One line; empty where nothing was said.
    """
    try:
        with plain_file(log) as stream:
            stream.seek(begin)
            lines = stream.read().decode(errors="replace").splitlines()
    except (OSError, StorageError):
        lines = []
    said = [line.strip() for line in lines if line.strip()]
    errors = [line for line in said if line.startswith("error: ")]
    return errors[-1] if errors else _reason(folder, pid) or (said or [""])[-1]


def _reason(folder: Path, pid: int | None) -> str:
    """Return why a run failed, where its status is of this process and not of one before."""
    status = read_status(folder)
    if pid is None or status.get("pid") != pid or not str(status.get("state", "")).startswith("failed"):
        return ""
    return (str(status.get("reason", "")).splitlines() or [""])[0]
