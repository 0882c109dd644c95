"""A folder of this machine, or of a file system that is mounted here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlcore.errors import ConfigError
from rlcore.files import inside, plain_file, replacing, sync_folder
from rlcore_plugin_share.places.base import FilesPlace


class Folder(FilesPlace):
    """A folder: each file is renamed into its place when it is whole."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._folder = Path(address)
        if self._folder.exists() and not self._folder.is_dir():
            raise ConfigError(f"{address!r} is a file; name a folder")

    @contextmanager
    def open(self, name: str, begin: int = 0) -> Iterator[BinaryIO]:
        """Open a file that is no link."""
        with plain_file(inside(self._folder, name)) as stream:
            stream.seek(begin)
            yield stream

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file; links are not followed."""
        sizes = {}
        for folder, _, names in os.walk(self._folder):
            for file in (Path(folder, name) for name in names):
                sizes[file.relative_to(self._folder).as_posix()] = file.lstat().st_size
        return sizes

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file beside its place, sync it, and rename it."""
        file = inside(self._folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as beside, beside.open("xb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(file.parent)

    def remove(self, name: str) -> None:
        """Remove a file."""
        inside(self._folder, name).unlink()
