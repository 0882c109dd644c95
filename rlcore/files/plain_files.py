"""Files of a run folder: each lies inside its folder and is reached without following links, or is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rlcore.errors import StorageError


def inside(folder: Path, name: object) -> Path:
    """Return the place of a file or folder that something in `folder` names; it need not be there.

    Args:
        folder: taken as it is; it may be reached by links.
        name: relative to it, with `/` between its parts.

    Raises:
        StorageError: the name is no relative path, leaves the folder, or goes over a link.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise StorageError(f"{name!r:.200} is not the name of a file in {folder}")
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise StorageError(f"{name!r:.200} does not stay inside {folder}")
    place = folder
    for part in parts:
        place = place / part
        try:
            is_link = stat.S_ISLNK(os.lstat(place).st_mode)
        except (FileNotFoundError, NotADirectoryError):  # nor is there anything below it
            return folder.joinpath(*parts)
        except OSError as error:  # a name that is too long, or a folder that cannot be looked into
            raise StorageError(f"{name!r:.200} in {folder} cannot be looked at: {error}") from error
        if is_link:
            raise StorageError(f"{place} is a link, and might lead out of {folder}")
    return place


@contextmanager
def plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading that nothing outside its folder can change or block on.

    Raises:
        StorageError: it is a link, has several names, or is no file at all.
        OSError: it cannot be opened.
    """
    # without waiting, so that a named pipe in its place cannot hold up the run
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        check_plain(descriptor)
        yield stream


def check_plain(descriptor: int) -> None:
    """Refuse an open file that something outside its folder may be.

    Raises:
        StorageError: it has several names, or is no file at all.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise StorageError("it is not a file")
    if status.st_nlink > 1:
        raise StorageError(f"it is a hard link, the file has {status.st_nlink} names; copy the folder with cp -r")


def read_plain(path: Path, most: int) -> bytes:
    """Return the content of a plain file.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        StorageError: it is no plain file, or larger.
        OSError: it cannot be opened or read.
    """
    with plain_file(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise StorageError(f"it has more than {most:,} bytes")
    return content
