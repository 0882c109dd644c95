"""Plain files of a run folder: opening them, and refusing links and names that lead out of the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rlcore.errors import StorageError


def inside(folder: Path, name: object) -> Path:
    """Return the path of a file or folder inside `folder` by its name; it need not exist.

    Args:
        folder: may itself be a link.
        name: relative to the folder, with `/` between its parts; read from a file that may be manipulated.

    Raises:
        StorageError: the name is no relative path, leaves the folder, or passes a link.
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
        except (FileNotFoundError, NotADirectoryError):  # then nothing below it exists either
            return folder.joinpath(*parts)
        except OSError as error:  # a name that is too long, or a folder that cannot be looked into
            raise StorageError(f"{name!r:.200} in {folder} cannot be looked at: {error}") from error
        if is_link:
            raise StorageError(f"{place} is a link, and might lead out of {folder}")
    return place


@contextmanager
def plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a plain file for reading: no link, no hard link and no pipe.

    Raises:
        StorageError: it has several names or is no file.
        OSError: it cannot be opened.
    """
    # nonblocking: opening a named pipe in its place would wait for its other end
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        check_plain(descriptor)
        yield stream


def check_plain(descriptor: int) -> None:
    """Refuse an open file with another name, which may lie outside its folder, and anything but a file.

    Raises:
        StorageError: it has several names or is no file.
    """
    # the open file is asked and not the path, which may be replaced in between
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise StorageError("it is not a file")
    if status.st_nlink > 1:
        raise StorageError(f"it is a hard link, the file has {status.st_nlink} names; copy the folder with cp -r")


def read_plain(path: Path, most: int) -> bytes:
    """Return the content of a plain file.

    Args:
        path: the file.
        most: the largest size in bytes.

    Raises:
        StorageError: it is no plain file, or larger.
        OSError: it cannot be opened or read.
    """
    with plain_file(path) as stream:
        content = stream.read(most + 1)  # one more tells a file that is too large from one of this size
    if len(content) > most:
        raise StorageError(f"it has more than {most:,} bytes")
    return content
