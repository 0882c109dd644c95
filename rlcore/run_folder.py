"""The folder of a run: making it, the files in it, and the status that always says where the run stands."""

from __future__ import annotations

import datetime
import json
import os
import secrets
from pathlib import Path
from typing import Any, Final, Literal

import tomli_w

from rlcore.errors import ConfigError, StorageError

CONFIG_FILE: Final = "config.toml"
STATUS_FILE: Final = "status.json"
CHECKPOINTS: Final = "checkpoints"

RunState = Literal["running", "done", "stopped-resumable", "failed-resumable", "failed"]


def make(folder: Path) -> None:
    """Make the folder of a new run and see that it can be written to.

    Raises:
        ConfigError: it exists already, or cannot be made or written to.
    """
    if folder.exists():
        raise ConfigError(
            f"run folder {str(folder)!r} exists already; continue it with --resume, choose another name with "
            "--set run.name=NAME, or remove it"
        )
    try:
        folder.mkdir(parents=True)
        probe = folder / f".probe-{secrets.token_hex(3)}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"run folder {str(folder)!r} cannot be made or written to: {error}; choose another place with "
            "--set run.folder=PATH"
        ) from error


def write_config(folder: Path, resolved: dict[str, Any]) -> None:
    """Write the resolved config."""
    (folder / CONFIG_FILE).write_text(tomli_w.dumps(resolved))


class Status:
    """Writes `status.json`, replaced as a whole each time.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / STATUS_FILE

    def write(self, state: RunState, frames: int, reason: str = "", checkpoint: Path | None = None) -> None:
        """Say where the run stands.

        Raises:
            StorageError: the file cannot be written.
        """
        content = {
            "state": state,
            "reason": reason,
            "frames": frames,
            "checkpoint": checkpoint.name if checkpoint else None,
            "pid": os.getpid(),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        temporary = self._file.with_name(f".{STATUS_FILE}-{secrets.token_hex(3)}")
        try:
            temporary.write_text(json.dumps(content, indent=1) + "\n")
            os.replace(temporary, self._file)
        except OSError as error:
            raise StorageError(f"{self._file} cannot be written: {error}") from error


def read_status(folder: Path) -> dict[str, Any]:
    """Return the content of `status.json`, or an empty dict when there is none."""
    try:
        status = json.loads((folder / STATUS_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}
