"""The folder of a run: making it, the files in it, and the status that always says where the run stands."""

from __future__ import annotations

import datetime
import json
import os
import secrets
import socket
import tomllib
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import tomli_w

from rlcore.errors import ConfigError, StorageError

CONFIG_FILE: Final = "config.toml"
LOCK_FILE: Final = ".lock"
STATUS_FILE: Final = "status.json"
CHECKPOINTS: Final = "checkpoints"

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
    except OSError as error:
        raise ConfigError(
            f"run folder {str(folder)!r} cannot be made or written to: {error}; choose another place with "
            "--set run.folder=PATH"
        ) from error


def write_config(folder: Path, resolved: dict[str, Any], name: str = CONFIG_FILE) -> None:
    """Write the resolved config, replaced as a whole, so that it outlives a crash as the checkpoints do."""
    replace_durably(folder / name, tomli_w.dumps(resolved))
    for place in (folder, folder.parent, folder.parent.parent):
        sync_folder(place)


def read_config(folder: Path) -> dict[str, Any]:
    """Return the resolved config of a run, or an empty dict when there is none."""
    try:
        return tomllib.loads((folder / CONFIG_FILE).read_text())
    except (OSError, ValueError):
        return {}


def replace_durably(file: Path, text: str) -> None:
    """Write a file as a whole, so that after a crash it has this text or the one before; its folder is not synced."""
    temporary = file.with_name(f".{file.name}-{secrets.token_hex(3)}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Lock:
    """Keeps a second process out of a run folder, until it is released or the process ends, however it ends.

    Args:
        folder: of the run.

    Raises:
        ConfigError: another process holds it; names host and process.
    """

    def __init__(self, folder: Path) -> None:
        self._stream = (folder / LOCK_FILE).open("a+")
        try:
            import fcntl

            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such lock on this system
            return
        except BlockingIOError:
            self._refuse(folder)
            return
        except OSError:  # nor on this file system
            return
        # a process that this one forks, and that outlives it, must not keep the lock
        os.register_at_fork(after_in_child=partial(_close, weakref.ref(self._stream)))
        self._stream.truncate(0)
        self._stream.write(f"{socket.gethostname()} {os.getpid()}\n")
        self._stream.flush()

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
        try:
            replace_durably(self._file, json.dumps(content, indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"{self._file} cannot be written: {error}") from error


def read_status(folder: Path) -> dict[str, Any]:
    """Return the content of `status.json`, or an empty dict when there is none."""
    try:
        status = json.loads((folder / STATUS_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}
