"""The lock of a folder: it keeps a second process out until it is released or its process ends, however it ends."""

from __future__ import annotations

import errno
import os
import socket
import time
import weakref
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from rlcore.errors import ConfigError, StorageError
from rlcore.files.plain_files import check_plain

LOCK_FILE: Final = ".lock"
# longer than the companion of a process that is gone holds its lock, also on a machine that is busy
_TAKE_OVER_SECONDS: Final = 10.0


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


def own_rights(folder: Path, error: OSError) -> str:
    """Return what to do about a run folder that this user may not write to."""
    return (
        f"run folder {str(folder)!r} cannot be written to: {error}; make it yours, or go on with a copy of your own: "
        f"cp -r {folder} COPY"
    )


class Lock:
    """Keeps a second process out of a run folder, until it is released or the process ends, however it ends.

    Args:
        folder: of the run.

    Raises:
        ConfigError: another process holds it; names host and process. Or this user may not write there, or what has
            the name of the lock is no plain file.
    """

    def __init__(self, folder: Path) -> None:
        self._stream = _opened(folder)
        try:
            import fcntl

            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such lock on this system
            return
        except BlockingIOError:
            if not self._take_over():
                self._refuse(folder)
                return
        except OSError:  # nor on this file system
            return
        # a process that this one forks, and that outlives it, must not keep the lock
        os.register_at_fork(after_in_child=partial(_close, weakref.ref(self._stream)))
        self._stream.seek(0)  # it may have been read, and what is written after that place follows NUL bytes
        self._stream.truncate()
        self._stream.write(f"{socket.gethostname()} {os.getpid()}\n")
        self._stream.flush()

    def _take_over(self) -> bool:
        """Take the lock of a process that is gone, which its companion may have for a moment; return whether it came.

        It returns at once when the process is there. One that had only just taken the lock has not said yet who it is,
        or was killed before it could.
        """
        import fcntl

        deadline = time.monotonic() + _TAKE_OVER_SECONDS
        while time.monotonic() < deadline:
            self._stream.seek(0)
            written = self._stream.read()
            if written and not holder_is_gone(written):
                return False
            time.sleep(0.02)
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return True
        return False

    def release(self) -> None:
        """Let others in."""
        self._stream.close()

    def _refuse(self, folder: Path) -> None:
        self._stream.seek(0)
        host, _, process = self._stream.read().strip().partition(" ")
        if (host, process) != (socket.gethostname(), str(os.getpid())):  # this process may look at its own run
            self._stream.close()
            raise ConfigError(
                f"run folder {str(folder)!r} is in use by process {process or 'unknown'} on {host or 'unknown'}; wait "
                "for it, stop it, or choose another name with --set run.name=NAME"
            )


def _opened(folder: Path) -> TextIO:
    """Open the file of a lock, and write over nothing that it may lead to."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        stream = os.fdopen(os.open(folder / LOCK_FILE, flags, 0o666), "r+", encoding="utf-8", errors="replace")
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise ConfigError(own_rights(folder, error)) from error
        raise ConfigError(_no_lock(folder, error)) from error
    try:
        check_plain(stream.fileno())
    except StorageError as error:
        stream.close()
        raise ConfigError(_no_lock(folder, error)) from None
    return stream


def _no_lock(folder: Path, error: Exception) -> str:
    return f"{folder / LOCK_FILE} is not the lock of a run ({error}); remove it, if no process trains in that folder"


def _close(stream: weakref.ref[TextIO]) -> None:
    open_stream = stream()
    if open_stream is not None:
        open_stream.close()
