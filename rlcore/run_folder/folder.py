"""The folder of a run: making it, and writing and reading its config."""

from __future__ import annotations

import secrets
import tomllib
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlcore.config.trust import note_written
from rlcore.errors import ConfigError, StorageError
from rlcore.files.durable import sync_folder
from rlcore.files.plain_files import read_plain
from rlcore.files.replacement import replace

CHECKPOINTS: Final = "checkpoints"
CONFIG_FILE: Final = "config.toml"
MOST_BYTES: Final = 1 << 20


def make(folder: Path) -> None:
    """Make the folder of a new run, and write a file into it as a test.

    Raises:
        ConfigError: the folder exists, or cannot be made or written to.
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
    """Write the resolved config of a run, durable as its checkpoints are."""
    replace(folder / name, tomli_w.dumps(resolved), durable=True)
    note_written(resolved, folder)
    # the run folder and the folder of runs may be new, and their names outlive a power cut only once they are synced
    for place in (folder, folder.parent, folder.parent.parent):
        sync_folder(place)


def read_config(folder: Path, name: str = CONFIG_FILE) -> dict[str, Any]:
    """Return the resolved config of a run; empty where it is absent or cannot be read."""
    try:
        # editors on Windows put a byte order mark in front
        return tomllib.loads(read_plain(folder / name, MOST_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError, StorageError):
        return {}


def check_is_run(folder: Path) -> None:
    """Refuse a folder that is none of a run.

    Raises:
        ConfigError: it has no config; names some of the runs in it.
    """
    if not (folder / CONFIG_FILE).is_file():
        runs = sorted(str(path.parent) for path in folder.glob(f"*/{CONFIG_FILE}"))[:3]
        inside = f"; there are runs in it, such as {', '.join(runs)}" if runs else ""
        raise ConfigError(f"{str(folder)!r} is not a run folder: it has no {CONFIG_FILE}{inside}")


class Presence:
    """Detects that a run folder was removed or replaced during its run, which would go on in deleted files.

    Args:
        folder: of the run; it exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._identity_at_first = self._identity()

    def check(self) -> None:
        """Compare the folder with the one at the begin of the run.

        Raises:
            StorageError: it is another one, so that no checkpoint in it could be resumed with the earlier ones.
        """
        if self._identity() != self._identity_at_first:
            raise StorageError(
                f"run folder {str(self._folder)!r} was removed, renamed or replaced while the run went on; what it "
                "held is gone or elsewhere. Put it back to continue with --resume, or start the run again"
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._folder.stat()  # a new folder under the same name has another inode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_dev, status.st_ino
