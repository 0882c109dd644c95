"""A disk that fails: out of space, over quota, broken or read-only, at the operation of your choice."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from rlcore_plugin_testing.faults.watched import watched

OPERATIONS: Final = frozenset(
    {"open", "write", "fsync", "fdatasync", "mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir"}
)
ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


class FailingDisk:
    """Makes file operations inside one folder fail, for real code in this process.

    Without `at` nothing fails, and `performed` says what there is to fail. A write that fails has written half.

    Args:
        folder: operations outside of it are left alone.
        error: an `errno`, such as `errno.ENOSPC`.
        at: number of the first operation that fails, from 1.
        lasting: whether every later one fails too, as on a disk that stays full; otherwise only that one.
        operations: which operations count.

    Attributes:
        performed: every operation that counts, failed or not, as `"name path"`.

    Example:
        with FailingDisk(folder) as disk:
            save()
        for number in range(1, len(disk.performed) + 1):
            with FailingDisk(folder, errno.ENOSPC, at=number):
                save_and_expect_an_error()
    """

    def __init__(
        self,
        folder: Path,
        error: int = errno.EIO,
        at: int | None = None,
        lasting: bool = False,
        operations: Collection[str] = OPERATIONS,
    ) -> None:
        self.performed: list[str] = []
        self._error = error
        self._at = at
        self._lasting = lasting
        self._operations = operations
        self._folder = folder
        self._context = watched(folder, self)

    @property
    def failed(self) -> bool:
        """Whether an operation failed."""
        return self._at is not None and len(self.performed) >= self._at

    def call(self, name: str, paths: tuple[Path, ...], perform: Callable[[], Any]) -> Any:
        """Perform a call, or fail."""
        if self._fails(name, paths[0]):
            raise self._exception(paths[0])
        return perform()

    def write(self, path: Path, content: bytes, perform: Callable[[bytes], int]) -> int:
        """Write everything, or fail when half is written."""
        if self._fails("write", path):
            if self._error != errno.EROFS:
                perform(content[: len(content) // 2])
            raise self._exception(path)
        return perform(content)

    def __enter__(self) -> FailingDisk:
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, traceback)

    def _fails(self, name: str, path: Path) -> bool:
        if name not in self._operations:
            return False
        self.performed.append(f"{name} {path}")
        number = len(self.performed)
        return self._at is not None and (number >= self._at if self._lasting else number == self._at)

    def _exception(self, path: Path) -> OSError:
        return OSError(self._error, os.strerror(self._error), str(path))
