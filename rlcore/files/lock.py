"""The lock of a run folder, which keeps a second process out."""

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
# how long to wait for the companion of a dead process, which holds the lock until it has seen to the end of the run
_TAKE_OVER_SECONDS: Final = 10.0


def in_use(folder: Path) -> bool | None:
    """Return whether a process holds the lock of a run folder; None where the file system cannot tell."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # no `flock` on this system or file system: ask for the process by its number
        return False if holder_is_gone(os.read(descriptor, 1000).decode(errors="replace")) else None
    finally:
        os.close(descriptor)
    return False


def holder_is_gone(written: str) -> bool:
    """Return whether the process that a lock file names ran on this machine and has ended.

    Args:
        written: content of the lock file: host and number of the process.
    """
    host, _, number = written.strip().partition(" ")
    if host != socket.gethostname() or not number.isdecimal() or not 0 < int(number) < 2**31:
        return False
    try:
        os.kill(int(number), 0)  # signal 0 asks whether the process is there
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[:1] == ["Z"]  # a zombie: it has ended, and its parent has not asked for its exit code


def own_rights(folder: Path, error: OSError) -> str:
    """Return the message for a run folder that this user may not write to."""
    return (
        f"run folder {str(folder)!r} cannot be written to: {error}; make it yours, or go on with a copy of your own: "
        f"cp -r {folder} COPY"
    )


class Lock:
    """Keeps a second process out of a run folder until `release` or the end of the process, a crash included.

    Args:
        folder: of the run.
        pid: of the process that others read of; None for this one. A companion leaves there the name of the process
            that has ended, as others wait for a companion and are refused by a process that runs.

    Raises:
        ConfigError: another process holds the lock; the message names it. Or this user may not write there, or the
            lock file is a link or no file.
    """

    def __init__(self, folder: Path, pid: int | None = None) -> None:
        self._stream = _opened(folder)
        try:
            import fcntl

            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows has no `flock`; there nothing keeps a second process out
            return
        except BlockingIOError:
            if not self._take_over():
                self._refuse(folder)
                return
        except OSError:  # some network file systems have none either
            return
        # a forked process shares the lock, and would keep it when it outlives this one
        os.register_at_fork(after_in_child=partial(_close, weakref.ref(self._stream)))
        self._stream.seek(0)  # `_take_over` may have read it; writing behind the new end would leave NUL bytes before
        self._stream.truncate()
        self._stream.write(f"{socket.gethostname()} {pid or os.getpid()}\n")
        self._stream.flush()

    def _take_over(self) -> bool:
        """Wait for the lock of a dead process while its companion still holds it; return whether it is ours.

        Returns False at once where the process is alive. An empty lock file is waited for too: its process has only
        just taken the lock, or was killed before it wrote its number.
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
        """Release the lock."""
        self._stream.close()

    def _refuse(self, folder: Path) -> None:
        self._stream.seek(0)
        host, _, process = self._stream.read().strip().partition(" ")
        # the same process may open its own run again, to look at it
        if (host, process) != (socket.gethostname(), str(os.getpid())):
            self._stream.close()
            raise ConfigError(
                f"run folder {str(folder)!r} is in use by process {process or 'unknown'} on {host or 'unknown'}; wait "
                "for it, stop it, or choose another name with --set run.name=NAME"
            )


def _opened(folder: Path) -> TextIO:
    """Open the lock file of a folder without following links, as its content is written over."""
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
