"""Whether a run whose status says that it is running has a process: one that was killed could not say that it ended."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

LOCK_FILE: Final = ".lock"
CHECKPOINTS: Final = "checkpoints"
_NO_WORD: Final = "its process ended without a word: it was killed, or something in it called os._exit"


def as_it_is(folder: Path, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a run, with how it ended where its process could not say so.

    Args:
        folder: of the run.
        status: what its file says.
    """
    if status.get("state") != "running" or in_use(folder) is not False:
        return dict(status)
    state = "failed-resumable" if _has_checkpoint(folder) else "failed"
    return {**status, "state": state, "reason": _NO_WORD}


def in_use(folder: Path) -> bool | None:
    """Return whether a process works in a run folder; None when that cannot be known here."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # no such lock on this system or file system
        return False if holder_is_gone(os.read(descriptor, 1000).decode(errors="replace")) else None
    finally:
        os.close(descriptor)
    return False


def holder_is_gone(written: str) -> bool:
    """Return whether the process that a lock file names ran on this machine and has ended.

    Args:
        written: what the lock file says: host and number of the process.
    """
    host, _, number = written.strip().partition(" ")
    if host != socket.gethostname() or not number.isdecimal() or not 0 < int(number) < 2**31:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[:1] == ["Z"]  # nobody asked for its exit code yet


def _has_checkpoint(folder: Path) -> bool:
    try:
        names = os.listdir(folder / CHECKPOINTS)
    except OSError:
        return False
    return any(name[0] in "0123456789" and "-" in name for name in names)
