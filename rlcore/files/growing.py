"""A log file that grows during a run, and that a resume checks and cuts back to the length at its checkpoint."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.files.log_files import open_log, shortfall

# lines are written once they are this many bytes, so that a line costs no system call
_BUFFER: Final = 1 << 13
# bytes that are held in memory while the disk refuses them
_MOST_HELD: Final = 16 << 20
_PIECE: Final = 1 << 20
# the position in an empty file
NOTHING: Final[Mapping[str, Any]] = {"size": 0, "xxh3": xxhash.xxh3_128_hexdigest(b"")}


class GrowingFile:
    """Appends lines to a file, holds them in memory while the disk refuses them, and checks the file at a resume.

    A file that is there already goes on after its last whole line. Not safe for several threads.

    Args:
        path: of the file; it is made with the first line, and a link in its place is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending = bytearray()
        self._descriptor: int | None = None
        self._is_read = False
        self._size = 0
        self._half_at: int | None = None
        self._digest = xxhash.xxh3_128()

    def __del__(self) -> None:
        """Flush when a script ends without `close`."""
        with contextlib.suppress(Exception):  # Python ends: nobody could handle an error
            self.close()

    @property
    def size(self) -> int:
        """Bytes of all lines, with those that are not written yet."""
        if not self._is_read:
            self._take_over()
        return self._size + len(self._pending)

    def append(self, lines: bytes) -> None:
        """Append whole lines; they are written at the next flush, or once 8 KiB wait.

        Raises:
            OSError: 16 MiB wait for a disk that refuses them; these lines are not appended.
        """
        if len(self._pending) + len(lines) > _MOST_HELD:
            self.flush()
        self._pending += lines
        if len(self._pending) >= _BUFFER:
            try:
                self.flush()
            except OSError:  # tried again with the next line; an explicit `flush` raises it
                return

    def flush(self) -> None:
        """Write the lines that wait.

        Raises:
            OSError: the disk refuses them; they wait for the next flush.
        """
        if not self._pending:
            return
        descriptor = self._open()
        status = os.fstat(descriptor)
        if not status.st_nlink:  # writing into a deleted file succeeds, and the lines would be lost
            raise FileNotFoundError(errno.ENOENT, "it was deleted while the run wrote to it", str(self.path))
        begin = status.st_size
        if self._half_at is not None:  # a failed write has left half a line: write it again from its begin
            begin = self._half_at
            os.ftruncate(descriptor, begin)
        self._half_at = begin
        try:
            _write_all(descriptor, self._pending)
        except OSError:
            written = os.fstat(descriptor).st_size - begin
            self._half_at += self._count_written(self._pending.rfind(b"\n", 0, written) + 1)
            raise
        self._count_written(len(self._pending))
        self._half_at = None

    def close(self) -> None:
        """Flush and close; a further line opens the file again.

        Raises:
            OSError: the disk refuses the lines that wait; they are lost.
        """
        try:
            self.flush()
        finally:
            self._close()

    def position(self) -> dict[str, Any]:
        """Return size and checksum of the file with the lines that wait."""
        size = self.size
        digest = self._digest.copy()  # the digest itself goes on with written lines alone
        digest.update(self._pending)
        return {"size": size, "xxh3": digest.hexdigest()}

    def go_back(self, position: Mapping[str, Any]) -> str:
        """Cut the file back to a position; return a message where its content differs there, else an empty text.

        Args:
            position: `size` in bytes, and perhaps `xxh3`; without it only the length is compared.

        Raises:
            StorageError: the path is a link or no file.
            OSError: the file cannot be read or cut.
        """
        self._close()
        self._pending.clear()
        here, difference = self._compared(position)
        if self._size == position["size"]:
            self._cut(here)
        else:  # shorter than the position: there is nothing to cut but half a line at its end
            self._take_over()
        return difference

    def differs_from(self, position: Mapping[str, Any]) -> str:
        """Return a message where the content up to a position differs, else an empty text; the file stays as it is.

        Args:
            position: as for `go_back`.

        Raises:
            StorageError: the path is a link or no file.
            OSError: the file cannot be read.
        """
        return self._compared(position)[1]

    def set_aside(self) -> Path | None:
        """Begin an empty file; rename a file that is there, and return its new path."""
        self._close()
        self._pending.clear()
        self._start_over()
        self._is_read = True
        if not os.path.lexists(self.path):
            return None
        aside = self.path.with_name(f"{self.path.name}.before-{secrets.token_hex(3)}")
        os.rename(self.path, aside)
        return aside

    def _count_written(self, count: int) -> int:
        """Move bytes from the lines that wait to the written ones; return their count."""
        self._digest.update(self._pending[:count])
        self._size += count
        del self._pending[:count]
        return count

    def _open(self) -> int:
        if self._descriptor is None:
            if not self._is_read:
                self._take_over()
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(parents=True)
            # a link in its place must not lead the lines elsewhere, nor may a named pipe block the run
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o666)
        return self._descriptor

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _start_over(self) -> None:
        self._half_at = None
        self._size = 0
        self._digest = xxhash.xxh3_128()

    def _take_over(self) -> None:
        """Go on after the last whole line of the file that is there."""
        here = self._look(None)
        end = self._whole_lines(here)
        if end != here:
            self._look(end)
            self._cut(here)
        self._is_read = True

    def _compared(self, position: Mapping[str, Any]) -> tuple[int, str]:
        """Read the file up to a position; return its size, and a message where it differs."""
        size, checksum = position["size"], position.get("xxh3")
        here = self._look(size)
        if self._size == size and checksum not in (None, self._digest.hexdigest()):
            return here, f"{self.path} is not what it was at the checkpoint: some of it was changed since"
        return here, shortfall(self.path, here, size)

    def _look(self, size: int | None) -> int:
        """Take length and checksum of the file, or of its first `size` bytes; return its size."""
        self._start_over()
        if not os.path.lexists(self.path):
            return 0
        with open_log(self.path) as stream:
            here = os.fstat(stream.fileno()).st_size
            remaining = here if size is None else min(size, here)
            while remaining and (piece := stream.read(min(_PIECE, remaining))):
                self._digest.update(piece)
                self._size += len(piece)
                remaining -= len(piece)
        self._is_read = True
        return here

    def _whole_lines(self, size: int) -> int:
        """Return how many of the first `size` bytes are whole lines."""
        if not size:
            return 0
        with open_log(self.path) as stream:
            end = size
            while end:  # backwards, as the last end of a line is near the end
                begin = max(0, end - _PIECE)
                stream.seek(begin)
                last = stream.read(end - begin).rfind(b"\n")
                if last >= 0:
                    return begin + last + 1
                end = begin
        return 0

    def _cut(self, here: int) -> None:
        """Cut the file, which has `here` bytes, to the bytes that were read."""
        if here > self._size:
            os.truncate(self.path, self._size)  # which would fill a shorter file with zeros


def _write_all(descriptor: int, content: bytes | bytearray) -> None:
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        view.release()  # a bytearray with a view cannot shrink
