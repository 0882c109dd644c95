"""A place that is pushed to and pulled from, and the order in which a push writes, so that it can be cut off."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final

from rlcore.errors import ConfigError, StorageError
from rlcore.files import plain_file
from rlcore_plugin_share.manifest import MANIFEST, MOST_BYTES, UNFINISHED, Entry, Manifest, parse

PIECE: Final = 1 << 20


class Place(ABC):
    """A place, by its address.

    Args:
        address: as the user wrote it.

    Raises:
        ConfigError: nothing can be there.
        MissingPluginError: a library for it is not installed.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    @abstractmethod
    def open(self, name: str, begin: int = 0) -> AbstractContextManager[BinaryIO]:
        """Open a file for reading, from a byte on.

        Raises:
            FileNotFoundError: it is not there.
        """

    @abstractmethod
    def publish(self, manifest: Manifest, sources: Mapping[str, Path], overwrite: bool) -> list[str]:
        """Write the files of a manifest, and the manifest last.

        Args:
            manifest: of the files.
            sources: where each file is.
            overwrite: whether what was pushed there before may be replaced.

        Returns:
            The files that were not there yet.

        Raises:
            ConfigError: something else is there.
            StorageError: a file has changed since the manifest was made.
        """

    def manifest(self) -> Manifest | None:
        """Return the manifest of what is complete there; None where there is none.

        Raises:
            StorageError: it is damaged, or may not be used.
        """
        raw = self._read(MANIFEST)
        return None if raw is None else parse(raw, f"of {self.address}")

    def _read(self, name: str) -> bytes | None:
        try:
            with self.open(name) as stream:
                return stream.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None

    def _check_replaceable(self, published: Manifest, overwrite: bool) -> None:
        if not overwrite:
            raise ConfigError(
                f"{self.address} holds another push, of the {published.kind} {published.name!r} "
                f"({len(published.files)} files): choose another target, or say --overwrite"
            )


class FilesPlace(Place):
    """A place that is written file by file, so that a push goes on where an earlier one was cut off."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file there, by path; empty where there is nothing."""

    @abstractmethod
    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Write a file, in place of one of that name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    def publish(self, manifest: Manifest, sources: Mapping[str, Path], overwrite: bool) -> list[str]:
        """Write the files of a manifest that are not there, and the manifest last."""
        sizes = self.sizes()
        kept = self._kept(manifest, sizes, overwrite)
        if kept is None:
            if UNFINISHED in sizes:
                self.remove(UNFINISHED)
            return []
        missing = [name for name in sorted(manifest.files) if name not in kept]
        for name in missing:
            self.put(name, checked(sources[name], name, manifest.files[name]))
        there = self.sizes()
        wrong = [name for name, entry in manifest.files.items() if there.get(name) != entry.size]
        if wrong:
            raise StorageError(f"{self.address} lacks {wrong[0]} after it was written, or has a part of it; push again")
        self.put(MANIFEST, iter([manifest.render()]))
        self.remove(UNFINISHED)
        return missing

    def _kept(self, manifest: Manifest, sizes: Mapping[str, int], overwrite: bool) -> set[str] | None:
        """Make the place ready for a push; return the files that are there already, or None where all of it is.

        What says that a file is there is a manifest: of the push before, or of this one when it was cut off. It is
        replaced only once the files in which the two differ are gone.
        """
        published = self._published(sizes)
        there = {name for name, entry in manifest.files.items() if sizes.get(name) == entry.size}
        if published == manifest and len(there) == len(manifest.files):
            return None
        if published is not None:
            self._check_replaceable(published, overwrite or published == manifest)
            self.put(UNFINISHED, iter([published.render()]))
        elif sizes and UNFINISHED not in sizes:
            raise ConfigError(
                f"{self.address} is not empty and holds nothing that was pushed ({min(sizes)!r}, for one): name a "
                "folder in it that does not exist yet"
            )
        if MANIFEST in sizes:
            self.remove(MANIFEST)
        earlier = self._unfinished() if published is None else published.files
        for name in sorted(sizes.keys() - {MANIFEST, UNFINISHED}):
            if earlier.get(name) != manifest.files.get(name):  # what is in neither is somebody else's
                self.remove(name)
        self.put(UNFINISHED, iter([manifest.render()]))
        return {name for name in there if earlier.get(name) == manifest.files[name]}

    def _published(self, sizes: Mapping[str, int]) -> Manifest | None:
        try:
            return self.manifest() if MANIFEST in sizes else None
        except StorageError:
            if UNFINISHED in sizes:  # the push was cut off while it wrote the manifest
                return None
            raise

    def _unfinished(self) -> Mapping[str, Entry]:
        """Return the files of the push that was cut off; none where its manifest was cut off itself."""
        try:
            raw = self._read(UNFINISHED)
            return {} if raw is None else parse(raw, f"of the unfinished push to {self.address}").files
        except StorageError:
            return {}


def checked(source: Path, name: str, entry: Entry) -> Iterator[bytes]:
    """Yield a file in pieces.

    Raises:
        StorageError: it is not what the manifest says.
    """
    digest, size = hashlib.sha256(), 0
    with plain_file(source) as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
            size += len(piece)
            if size > entry.size:
                break
            yield piece
    if (size, digest.hexdigest()) != (entry.size, entry.sha256):
        raise StorageError(f"{name} has changed while it was pushed; push again")
