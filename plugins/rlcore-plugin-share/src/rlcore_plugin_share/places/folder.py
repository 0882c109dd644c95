"""A folder of this machine, or of a file system that is mounted here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from rlcore.errors import ConfigError
from rlcore.files import inside, plain_file, replacing, sync_folder
from rlcore_plugin_share.manifest import MANIFEST, UNFINISHED, Manifest
from rlcore_plugin_share.places.base import FilesPlace

# what a push that was killed leaves beside a file
_LEFT: Final = re.compile(r"\.(.+)-[0-9a-f]{6}")


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
        """Return the bytes of every file that is not hidden; links are not followed."""
        return {
            file.relative_to(self._folder).as_posix(): file.lstat().st_size
            for file in self._walk()
            if not file.name.startswith(".")
        }

    def publish(self, manifest: Manifest, sources: Mapping[str, Path], overwrite: bool) -> list[str]:
        """Write what is missing, the manifest last; and clear away what a push that was killed left."""
        new = super().publish(manifest, sources, overwrite)
        for file in list(self._walk()):
            left = _LEFT.fullmatch(file.name)
            name = left and file.with_name(left[1]).relative_to(self._folder).as_posix()
            if name in manifest.files or name in (MANIFEST, UNFINISHED):
                file.unlink(missing_ok=True)
        return new

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

    def _walk(self) -> Iterator[Path]:
        for folder, _, names in os.walk(self._folder):
            yield from (Path(folder, name) for name in names)
