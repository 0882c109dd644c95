"""Run folders of other people: their config names code, which runs with the rights of who goes on from there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlcore.errors import ConfigError
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE


def check_own(folder: Path, trusted: bool, how: str = "--trust") -> None:
    """Refuse to import what the config of a run folder names, where the folder is somebody else's.

    Args:
        folder: of a run; one that is absent is refused elsewhere.
        trusted: whether the user said that it may run code.
        how: what a user says who trusts it, for the message.

    Raises:
        ConfigError: it belongs to another user, and nobody said to trust it.
    """
    if trusted or sys.platform == "win32":  # which has no such owners
        return
    for path in (folder, folder / CONFIG_FILE, folder / CHECKPOINTS):
        try:
            owner = path.stat().st_uid
        except OSError:
            continue
        if owner != os.geteuid():
            raise ConfigError(
                f"{str(path)!r} belongs to {_user(owner)}, not to you, and the config of a run names code that runs "
                f"with your rights ([plugins] files, [env] id): look at {folder / CONFIG_FILE}, then say {how}"
            )


def check_own_file(file: Path, trusted: bool) -> None:
    """Refuse a file that names or holds code, where it is somebody else's.

    Args:
        file: of an exported policy.
        trusted: whether the user said that it may run code.

    Raises:
        ConfigError: it belongs to another user, and nobody said to trust it.
    """
    if trusted or sys.platform == "win32":
        return
    owner = file.stat().st_uid
    if owner != os.geteuid():
        raise ConfigError(
            f"{str(file)!r} belongs to {_user(owner)}, not to you, and reading it may run code with your rights: if "
            "you trust it, say trust=True (rlcore.load_agent) or --trust"
        )


def _user(number: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(number).pw_name!r}"
    except KeyError:
        return f"user {number}"
