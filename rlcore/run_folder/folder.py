"""The folder of a run: making it, the files in it, and the status that always says where the run stands."""

from __future__ import annotations

import datetime
import errno
import json
import os
import secrets
import socket
import time
import tomllib
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import tomli_w

from rlcore.errors import ConfigError, StorageError
from rlcore.files.inside import check_plain, read_plain
from rlcore.process.liveness import CHECKPOINTS as CHECKPOINTS
from rlcore.process.liveness import LOCK_FILE as LOCK_FILE
from rlcore.process.liveness import as_it_is, holder_is_gone

CONFIG_FILE: Final = "config.toml"
STATUS_FILE: Final = "status.json"
_TAKE_OVER_SECONDS: Final = 3.0
_MOST_BYTES: Final = 1 << 20

# of the status: what people and commands count on
_ENTRIES: Final = {"state": str, "reason": str, "frames": int, "losses": dict, "time": str}

RunState = Literal["running", "done", "stopped-resumable", "failed-resumable", "failed"]


def make(folder: Path) -> None:
    """Make the folder of a new run and see that it can be written to.

    Raises:
        ConfigError: it exists already, or cannot be made or written to.
    """
    try:
        if folder.exists():
            raise ConfigError(
                f"run folder {str(folder)!r} exists already; continue it with --resume, choose another name with "
                "--set run.name=NAME, or remove it"
            )
        folder.mkdir(parents=True)
        probe = folder / f".probe-{secrets.token_hex(3)}"
        probe.write_text("")
        probe.unlink()
    except (OSError, UnicodeEncodeError) as error:  # a locale without UTF-8 cannot even name some folders
        raise ConfigError(
            f"run folder {str(folder)!r} cannot be made or written to: {error}; choose another place with "
            "--set run.folder=PATH"
        ) from error


def write_config(folder: Path, resolved: dict[str, Any], name: str = CONFIG_FILE) -> None:
    """Write the resolved config, replaced as a whole, so that it outlives a crash as the checkpoints do."""
    replace_durably(folder / name, tomli_w.dumps(resolved))
    for place in (folder, folder.parent, folder.parent.parent):
        sync_folder(place)


def read_config(folder: Path, name: str = CONFIG_FILE) -> dict[str, Any]:
    """Return the resolved config of a run, or an empty dict when there is none that can be read."""
    try:
        return tomllib.loads(read_plain(folder / name, _MOST_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError, StorageError):
        return {}


def replace_durably(file: Path, text: str) -> None:
    """Write a file as a whole, so that after a crash it has this text or the one before; its folder is not synced."""
    replace_whole(file, text, durable=True)


def replace_whole(file: Path, text: str, durable: bool = False) -> None:
    """Write a file as a whole, so that whoever reads it finds this text or the one before.

    Args:
        file: its folder is there.
        text: of the file, in UTF-8.
        durable: whether that holds after a power cut too.

    Raises:
        OSError: it cannot be written; the one before is as it was, and nothing is left beside it.
    """
    temporary = file.with_name(f".{file.name}-{secrets.token_hex(3)}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def own_rights(folder: Path, error: OSError) -> str:
    """Return what to do about a run folder that this user may not write to."""
    return (
        f"run folder {str(folder)!r} cannot be written to: {error}; make it yours, or go on with a copy of your own: "
        f"cp -r {folder} COPY"
    )


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Presence:
    """Notices that a run folder is removed or replaced while its run goes on, which writes into files without a name.

    Args:
        folder: of the run; it is there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = self._identity()

    def check(self) -> None:
        """See that the folder is the one that was there at first.

        Raises:
            StorageError: it is not; nothing that is written now can be resumed.
        """
        if self._identity() != self._found:
            raise StorageError(
                f"run folder {str(self._folder)!r} was removed, renamed or replaced while the run went on; what it "
                "held is gone or elsewhere. Put it back to continue with --resume, or start the run again"
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_dev, status.st_ino


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

        It returns at once when the process is there.
        """
        import fcntl

        deadline = time.monotonic() + _TAKE_OVER_SECONDS
        while time.monotonic() < deadline:
            self._stream.seek(0)
            if not holder_is_gone(self._stream.read()):
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
    found = stream()
    if found is not None:
        found.close()


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
        frames: int,
        reason: str = "",
        checkpoint: Path | None = None,
        exact: bool | None = None,
        losses: Mapping[str, int] | None = None,
    ) -> None:
        """Say where the run stands.

        Args:
            state: of the run.
            frames: collected so far.
            reason: why it is so.
            checkpoint: folder of the newest.
            exact: whether a resume gives the bits of an uninterrupted run.
            losses: what was lost so far, by cause.

        Raises:
            StorageError: the file cannot be written.
        """
        content = {
            "state": state,
            "reason": reason,
            "frames": frames,
            "checkpoint": checkpoint.name if checkpoint else None,
            "exact": exact,
            "losses": dict(losses or {}),
            "pid": os.getpid(),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(content, indent=1) + "\n"
        try:
            replace_durably(self._file, text)
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
        status = json.loads(read_plain(folder / STATUS_FILE, _MOST_BYTES))
    except (OSError, ValueError, RecursionError, StorageError):
        return {}
    if not isinstance(status, dict):
        return {}
    losses = status.get("losses")
    if isinstance(losses, dict):
        status["losses"] = {cause: count for cause, count in losses.items() if type(count) is int}
    kept = {key: value for key, value in status.items() if isinstance(value, _ENTRIES.get(key, object))}
    return as_it_is(folder, kept)
