"""Standing between real code and the file system: every call that changes one folder goes through an object of ours."""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from unittest import mock

# function to the keywords that say relative to which folder its first arguments are
_NAMED: Final[dict[str, tuple[str, ...]]] = {
    "mkdir": (("dir_fd",)),
    "unlink": (("dir_fd",)),
    "remove": (("dir_fd",)),
    "rmdir": (("dir_fd",)),
    "rename": ("src_dir_fd", "dst_dir_fd"),
    "replace": ("src_dir_fd", "dst_dir_fd"),
    "link": ("src_dir_fd", "dst_dir_fd"),
}
_BY_DESCRIPTOR: Final = ("fsync", "fdatasync")
_OPENS: Final = "open"


class Watcher(Protocol):
    """What stands between."""

    def call(self, name: str, paths: tuple[Path, ...], perform: Callable[[], Any]) -> Any:
        """Perform a call that concerns the folder, or do something else.

        Args:
            name: of the function: `open`, `mkdir`, `rename`, `fsync`, ...
            paths: what it is applied to, absolute.
            perform: makes the real call.
        """
        ...

    def write(self, path: Path, content: bytes, perform: Callable[[bytes], int]) -> int:
        """Write bytes to a file of the folder, all, some or none of them; return how many."""
        ...


@contextmanager
def watched(folder: Path, watcher: Watcher) -> Iterator[None]:
    """Send every call of this process that concerns a folder through a watcher.

    Covers `os`, `open`, `pathlib` and `shutil`, with and without `dir_fd`; not what C code does on its own.

    Args:
        folder: calls about anything outside of it are left alone.
        watcher: gets the calls.
    """
    root = Path(os.path.realpath(folder))
    with ExitStack() as stack:
        own = {name: getattr(os, name) for name in (*_NAMED, *_BY_DESCRIPTOR)}  # the tables hold names to patch
        for name, keywords in _NAMED.items():
            stack.enter_context(mock.patch.object(os, name, _named(root, watcher, name, own[name], keywords)))
        for name in _BY_DESCRIPTOR:
            stack.enter_context(mock.patch.object(os, name, _by_descriptor(root, watcher, name, own[name])))
        stack.enter_context(mock.patch.object(os, "write", _os_write(root, watcher, os.write)))
        stack.enter_context(mock.patch.object(os, _OPENS, _os_open(root, watcher, os.open)))
        opener = _open(root, watcher, io.open)
        stack.enter_context(mock.patch.object(io, "open", opener))
        stack.enter_context(mock.patch.object(builtins, "open", opener))
        yield


def _inside(root: Path, path: Any, folder_descriptor: int | None = None) -> Path | None:
    """Return the real path of what a call names, or None when it is outside of the folder."""
    if isinstance(path, int):
        return _of_descriptor(root, path)
    text = os.fsdecode(path)
    if folder_descriptor is not None:
        text = os.path.join(os.readlink(f"/proc/self/fd/{folder_descriptor}"), text)
    parent, name = os.path.split(os.path.abspath(text))
    found = Path(os.path.realpath(parent)) / name
    return found if found == root or root in found.parents else None


def _of_descriptor(root: Path, descriptor: int) -> Path | None:
    found = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    return found if found == root or root in found.parents else None


def _named(
    root: Path, watcher: Watcher, name: str, real: Callable[..., Any], keywords: tuple[str, ...]
) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        pairs = zip(arguments, keywords, strict=False)
        paths = [_inside(root, path, options.get(keyword)) for path, keyword in pairs]
        if None in paths:
            return real(*arguments, **options)
        return watcher.call(name, tuple(path for path in paths if path), lambda: real(*arguments, **options))

    return call


def _by_descriptor(root: Path, watcher: Watcher, name: str, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(file: Any) -> Any:
        descriptor = file if isinstance(file, int) else file.fileno()
        path = _of_descriptor(root, descriptor)
        return real(descriptor) if path is None else watcher.call(name, (path,), lambda: real(descriptor))

    return call


def _os_write(root: Path, watcher: Watcher, real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    def call(descriptor: int, content: Any) -> int:
        path = _of_descriptor(root, descriptor)
        if path is None:
            return real(descriptor, content)
        return watcher.write(path, bytes(content), lambda part: real(descriptor, part))

    return call


def _os_open(root: Path, watcher: Watcher, real: Callable[..., int]) -> Callable[..., int]:
    def call(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = _inside(root, path, dir_fd)
        if place is None:
            return real(path, flags, mode, dir_fd=dir_fd)
        opened: int = watcher.call(_OPENS, (place,), lambda: real(path, flags, mode, dir_fd=dir_fd))
        return opened

    return call


class _Raw(io.FileIO):
    """A file whose writes go through the watcher."""

    def __init__(self, file: Any, mode: str, watcher: Watcher, place: Path, closefd: bool, opener: Any) -> None:
        super().__init__(file, mode, closefd, opener)
        self._watcher = watcher
        self._place = place

    def write(self, content: Any) -> int:
        """Write some bytes."""
        return self._watcher.write(self._place, bytes(content), lambda part: super(_Raw, self).write(part) or 0)


def _open(root: Path, watcher: Watcher, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        place = _inside(root, file)
        if place is None:
            return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not set(mode) & set("wax+"):
            return watcher.call(
                _OPENS, (place,), lambda: real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            )
        plain = mode.replace("b", "").replace("t", "")
        raw = watcher.call(_OPENS, (place,), lambda: _Raw(file, plain, watcher, place, closefd, opener))
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffered = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)

    return call
