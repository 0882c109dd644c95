"""A log file that only grows, and knows how long it is and what it holds, so that a resume finds what became of it."""

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

# a line waits until so many bytes have come together, so that not each is a call of the system
_BUFFER: Final = 1 << 13
# what is held while the disk refuses it
_MOST_HELD: Final = 16 << 20
_PIECE: Final = 1 << 20
# the position of a file without a byte
NOTHING: Final[Mapping[str, Any]] = {"size": 0, "xxh3": xxhash.xxh3_128_hexdigest(b"")}


class GrowingFile:
    """Lines that are appended to a file, held in memory as long as the disk refuses them, and checked at a resume.

    A file that is there already goes on after its last whole line. One thread uses it.

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
        """Hand over what is left when a script ends without closing."""
        with contextlib.suppress(Exception):
            self.close()

    @property
    def size(self) -> int:
        """Bytes of all that was appended, also of what the disk has not taken yet."""
        if not self._is_read:
            self._take_over()
        return self._size + len(self._pending)

    def append(self, lines: bytes) -> None:
        """Append whole lines; they reach the system with the next flush, or when a few kilobytes have come together.

        Raises:
            OSError: the disk refuses them for so long that 16 MiB wait; what came in last is left out.
        """
        if len(self._pending) + len(lines) > _MOST_HELD:
            self.flush()
        self._pending += lines
        if len(self._pending) >= _BUFFER:
            try:
                self.flush()
            except OSError:  # whoever flushes hears of it, and it is tried again with the next line
                return

    def flush(self) -> None:
        """Hand what was appended to the system.

        Raises:
            OSError: the disk refuses it; it is kept, and tried again with the next flush.
        """
        if not self._pending:
            return
        descriptor = self._open()
        status = os.fstat(descriptor)
        if not status.st_nlink:
            raise FileNotFoundError(errno.ENOENT, "it was deleted while the run wrote to it", str(self.path))
        begin = status.st_size
        if self._half_at is not None:  # a write that failed has left a part of a line there
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
            OSError: the disk refuses what was appended; it is lost.
        """
        try:
            self.flush()
        finally:
            self._close()

    def position(self) -> dict[str, Any]:
        """Return how long the file is, in bytes, and the checksum of what it holds."""
        size = self.size
        digest = self._digest.copy()
        digest.update(self._pending)
        return {"size": size, "xxh3": digest.hexdigest()}

    def go_back(self, position: Mapping[str, Any]) -> str:
        """Remove what was appended after a position, and return what else is not as it was; empty when all is.

        Args:
            position: `size` in bytes, and perhaps `xxh3`; without it only the length is compared.

        Raises:
            StorageError: there is something in its place that is no file.
            OSError: it cannot be read or cut.
        """
        self._close()
        self._pending.clear()
        here, difference = self._compared(position)
        if self._size == position["size"]:
            self._cut(here)
        else:
            self._take_over()
        return difference

    def differs_from(self, position: Mapping[str, Any]) -> str:
        """Return what is not as it was at a position, of the bytes up to there; empty when all is. Nothing is changed.

        Args:
            position: as for `go_back`.

        Raises:
            StorageError: there is something in its place that is no file.
            OSError: it cannot be read.
        """
        return self._compared(position)[1]

    def set_aside(self) -> Path | None:
        """Begin with an empty file; one that is there gets another name, which is returned."""
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
        """Note that the disk has taken so many bytes of what is held."""
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
            # a link in its place does not lead the lines elsewhere, and a named pipe does not hold up the run
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
        whole = self._whole_lines(here)
        if whole != here:
            self._look(whole)
            self._cut(here)
        self._is_read = True

    def _compared(self, position: Mapping[str, Any]) -> tuple[int, str]:
        """Read the file up to a position; return how many bytes it has, and what is not as it was."""
        size, checksum = position["size"], position.get("xxh3")
        here = self._look(size)
        if self._size == size and checksum not in (None, self._digest.hexdigest()):
            return here, f"{self.path} is not what it was at the checkpoint: some of it was changed since"
        return here, shortfall(self.path, here, size)

    def _look(self, size: int | None) -> int:
        """Read the file, or `size` bytes of it, for length and checksum; return how many bytes it has."""
        self._start_over()
        if not os.path.lexists(self.path):
            return 0
        with open_log(self.path) as stream:
            here = os.fstat(stream.fileno()).st_size
            left = here if size is None else min(size, here)
            while left and (piece := stream.read(min(_PIECE, left))):
                self._digest.update(piece)
                self._size += len(piece)
                left -= len(piece)
        self._is_read = True
        return here

    def _whole_lines(self, size: int) -> int:
        """Return how many of the bytes are whole lines."""
        if not size:
            return 0
        with open_log(self.path) as stream:
            end = size
            while end:
                begin = max(0, end - _PIECE)
                stream.seek(begin)
                last = stream.read(end - begin).rfind(b"\n")
                if last >= 0:
                    return begin + last + 1
                end = begin
        return 0

    def _cut(self, here: int) -> None:
        """Remove what is in the file beyond what was read; a file is never made longer."""
        if here > self._size:
            os.truncate(self.path, self._size)


def _write_all(descriptor: int, content: bytes | bytearray) -> None:
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        view.release()
