"""The folder of a run while the run is built: made or found, locked, and given back where building fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlcore.errors import ConfigError
from rlcore.files.lock import Lock
from rlcore.run_folder import folder as run_folder


@dataclass(frozen=True)
class Claim:
    """A run folder that nobody else writes into.

    Attributes:
        folder: absolute, as an env may change the working directory and nothing of the run may follow it; None for a
            run that writes nothing.
        release: gives it free for others.
    """

    folder: Path | None
    release: Callable[[], None]


@contextmanager
def claimed_elsewhere(folder: Path | None) -> Iterator[Claim]:
    """Claim a run folder that the process which started this one has claimed, and gives free.

    Args:
        folder: None for a process that writes nothing.
    """
    yield Claim(None if folder is None else folder.absolute(), lambda: None)


@contextmanager
def claimed(named: Path | None, resume: bool) -> Iterator[Claim]:
    """Claim a run folder; where what happens inside fails, release it, and leave no new folder behind.

    Args:
        named: the folder, as the user named it; None for a run that writes nothing.
        resume: whether it has to be there already; else it is made.

    Raises:
        ConfigError: there is no folder to resume.
        StorageError: another process has it, or a run is in it already.
    """
    if named is None:
        yield Claim(None, lambda: None)
        return
    if not resume:
        run_folder.make(named)
    elif not named.is_dir():
        raise ConfigError(f"--resume: run folder {str(named)!r} does not exist; leave --resume out to begin the run")
    lock = Lock(named)
    folder = named.absolute()
    try:
        yield Claim(folder, lock.release)
    except BaseException:
        lock.release()
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        raise
