"""Log files that are read again: opened without following links, read line by line, cut back to where they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rlcore.errors import StorageError


def open_log(path: Path) -> BinaryIO:
    """Open a log file for reading.

    Raises:
        StorageError: it is a link, or no file at all.
        OSError: it cannot be opened.
    """
    if path.is_symlink():
        raise StorageError(f"{path} is a link, which is not followed; put the file in its place")
    # without waiting, so that a named pipe in its place cannot hold up the run
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise StorageError(f"{path} is not a file")
    return stream


def whole_lines(path: Path, begin: int = 0) -> Iterator[bytes]:
    """Yield the lines of a log file, each with its end; one that is cut off at the end of the file is left out.

    A process may append to the file meanwhile.

    Args:
        path: of the file; one that is absent has no lines.
        begin: byte at which the first line begins.

    Raises:
        StorageError: it is a link, or no file at all.
        OSError: it cannot be read.
    """
    if not path.exists():
        return
    with open_log(path) as stream:
        stream.seek(begin)
        for line in stream:
            if not line.endswith(b"\n"):
                return  # the rest of it may come meanwhile, and would be taken for a line
            yield line


def cut_back(path: Path, size: int) -> str:
    """Remove what was appended to a file after its first `size` bytes; return what of these is lost, empty for nothing.

    Raises:
        OSError: it cannot be cut.
    """
    here = path.stat().st_size if os.path.lexists(path) else 0
    if here > size:
        os.truncate(path, size)
    return shortfall(path, here, size)


def shortfall(path: Path, here: int, size: int) -> str:
    """Return what is lost of a log file that has `here` bytes and had `size` at a checkpoint; empty for nothing."""
    if here >= size:
        return ""
    if not os.path.lexists(path):
        return f"{path} is gone; {size} bytes were written before the checkpoint"
    return f"{path} has {here} bytes, and had {size} at the checkpoint; the rest of them is lost"
