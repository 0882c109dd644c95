"""Log files of a run: opening them without following links, reading their lines, cutting them back."""

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
        StorageError: it is a link or no file.
        OSError: it cannot be opened.
    """
    if path.is_symlink():
        raise StorageError(f"{path} is a link, which is not followed; put the file in its place")
    # nonblocking: opening a named pipe in its place would wait for its other end
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise StorageError(f"{path} is not a file")
    return stream


def whole_lines(path: Path, begin: int = 0) -> Iterator[bytes]:
    """Yield the whole lines of a log file, each with its line end.

    A process may append to the file meanwhile.

    Args:
        path: of the file; one that is absent has no lines.
        begin: byte at which the first line begins.

    Raises:
        StorageError: it is a link or no file.
        OSError: it cannot be read.
    """
    if not path.exists():
        return
    with open_log(path) as stream:
        stream.seek(begin)
        for line in stream:
            if not line.endswith(b"\n"):
                return  # half a line: a process is writing it, and the rest would be yielded as a line of its own
            yield line


def cut_back(path: Path, size: int) -> str:
    """Cut a file back to `size` bytes; return a message where it is shorter, else an empty text.

    Raises:
        OSError: it cannot be cut.
    """
    here = path.stat().st_size if os.path.lexists(path) else 0
    if here > size:
        os.truncate(path, size)
    return shortfall(path, here, size)


def shortfall(path: Path, here: int, size: int) -> str:
    """Return a message where a log file has `here` bytes and had more at a checkpoint: `size`; else an empty text."""
    if here >= size:
        return ""
    if not os.path.lexists(path):
        return f"{path} is gone; {size} bytes were written before the checkpoint"
    return f"{path} has {here} bytes, and had {size} at the checkpoint; the rest of them is lost"
