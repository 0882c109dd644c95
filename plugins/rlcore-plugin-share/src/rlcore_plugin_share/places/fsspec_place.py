"""A place that fsspec has a driver for: `memory://`, `file://`, `s3://` and so on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from rlcore.errors import ConfigError, MissingPluginError
from rlcore_plugin_share.places.base import FilesPlace


class FsspecPlace(FilesPlace):
    """A place by a URL of fsspec, whose drivers and settings are the user's."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        scheme = address.partition("://")[0]
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingPluginError(
                f"{scheme}:// needs fsspec, which is not installed: pip install 'rlcore-plugin-share[fsspec]'"
            ) from None
        try:
            self._system, self._root = url_to_fs(address)
        except ImportError as error:
            raise MissingPluginError(f"{scheme}:// needs its driver for fsspec: {error}") from error
        except ValueError as error:
            raise ConfigError(f"{address!r} is no place that fsspec knows: {error}") from error

    @contextmanager
    def open(self, name: str, begin: int = 0) -> Iterator[BinaryIO]:
        """Open a file."""
        with self._system.open(self._path(name), "rb") as stream:
            if begin:
                stream.seek(begin)
            yield stream

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file, as the place says them now."""
        self._system.invalidate_cache()
        try:
            listing = self._system.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        root = self._root.rstrip("/")
        return {path.removeprefix(root).lstrip("/"): int(about["size"] or 0) for path, about in listing.items()}

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file; one that is cut off is shorter, or is not there."""
        path = self._path(name)
        try:
            stream = self._system.open(path, "wb")
        except FileNotFoundError:  # the system has folders, which object stores have not
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            stream = self._system.open(path, "wb")
        try:
            with stream:
                for piece in pieces:
                    stream.write(piece)
        except Exception:
            self._system.rm(path)
            raise

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._system.rm(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"
