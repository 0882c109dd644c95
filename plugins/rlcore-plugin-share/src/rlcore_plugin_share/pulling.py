"""A pull: every file is checked before anything of it has the name that was asked for."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from rlcore.checkpoints import scan, verify
from rlcore.errors import ConfigError, RlcoreError, StorageError, describe
from rlcore.files import LOCK_FILE, Lock, inside, plain_file, sync_folder
from rlcore.run_folder import CHECKPOINTS
from rlcore_plugin_share.kinds import REPORT
from rlcore_plugin_share.manifest import MANIFEST, Entry, Manifest, shown
from rlcore_plugin_share.places import place_of
from rlcore_plugin_share.places.base import PIECE, Place

_PART: Final = ".part-"


@dataclass(frozen=True)
class Pulled:
    """What a pull did.

    Attributes:
        folder: that it made.
        manifest: of what is in it.
        new: the files that an earlier pull, which was cut off, had not fetched.
    """

    folder: Path
    manifest: Manifest
    new: list[str]


def pull(address: str, folder: Path, most: int) -> Pulled:
    """Pull what was pushed to a place.

    Args:
        address: of the place.
        folder: to make.
        most: the most bytes that it may have.

    Raises:
        ConfigError: the folder is there, or nothing was pushed to the place.
        StorageError: something is damaged, may not be pulled, or does not arrive; what has arrived is kept for the
            next pull.
    """
    place = place_of(address)
    _check_free(folder)
    with _named(address):
        manifest = place.manifest()
    if manifest is None:
        raise ConfigError(
            f"{address} holds nothing that is complete: there is no {MANIFEST}, which rlcore push writes last"
        )
    # a page with scripts, which `rlcore report` makes again
    files = {name: entry for name, entry in manifest.files.items() if name != REPORT}
    size = sum(entry.size for entry in files.values())
    if size > most:
        raise ConfigError(f"{address} has {size:,} bytes, more than {most:,}: allow them with --most-gb")
    partial = folder.absolute().parent / f".{folder.absolute().name}.pulling"
    with _locked(partial):
        _clear(partial, files)
        missing = [name for name, entry in files.items() if not _is_whole(partial, name, entry)]
        _check_space(partial, sum(files[name].size for name in missing))
        for name in missing:
            with _named(address):
                _fetch(place, partial, name, files[name])
        _check_checkpoints(partial)
        _finish(partial, folder, manifest)
    return Pulled(folder, manifest, missing)


def _check_free(folder: Path) -> None:
    if os.path.lexists(folder):
        raise ConfigError(f"{str(folder)!r} exists already; name a folder that does not")
    if not folder.absolute().parent.is_dir():
        raise ConfigError(f"{str(folder.absolute().parent)!r} is no folder; make it first")


@contextmanager
def _named(address: str) -> Iterator[None]:
    """Turn errors of drivers, libraries and the network into one that says what to do."""
    try:
        yield
    except RlcoreError:
        raise
    except Exception as error:
        raise StorageError(
            f"{address} cannot be pulled: {shown(describe(error))}; run it again, and it goes on from there"
        ) from error


@contextmanager
def _locked(partial: Path) -> Iterator[None]:
    """Hold the folder that a pull fills, which is this user's alone."""
    with suppress(FileExistsError):
        partial.mkdir(mode=0o700)
    if partial.is_symlink() or not partial.is_dir():
        raise ConfigError(f"{partial} is in the way: it is no folder of an earlier pull; remove it")
    try:
        lock = Lock(partial)
    except ConfigError as error:
        raise ConfigError(f"{partial} is being filled by another pull, or cannot be: {error}") from None
    try:
        yield
    finally:
        lock.release()


def _clear(partial: Path, files: dict[str, Entry]) -> None:
    """Remove what an earlier pull left there and this one does not ask for."""
    parts = {f"{_PART}{entry.sha256}" for entry in files.values()}
    for place, folders, names in os.walk(partial, topdown=False):
        for path in (Path(place, name) for name in names):
            name = path.relative_to(partial).as_posix()
            if name not in files and name not in (LOCK_FILE, *parts):
                path.unlink()
        for path in (Path(place, name) for name in folders):
            if path.is_symlink():
                path.unlink()
            else:
                with suppress(OSError):  # it is not empty
                    path.rmdir()


def _is_whole(partial: Path, name: str, entry: Entry) -> bool:
    try:
        with plain_file(inside(partial, name)) as stream:
            return _hashed(stream) == entry
    except FileNotFoundError:
        return False


def _hashed(stream: BinaryIO) -> Entry:
    digest, size = hashlib.sha256(), 0
    while piece := stream.read(PIECE):
        digest.update(piece)
        size += len(piece)
    return Entry(size, digest.hexdigest())


def _check_space(partial: Path, needed: int) -> None:
    free = shutil.disk_usage(partial).free
    if needed > free:
        raise StorageError(f"{needed:,} bytes are to be pulled, and {partial.parent} has {free:,} free")


def _fetch(place: Place, partial: Path, name: str, entry: Entry) -> None:
    """Fetch a file, on from where an earlier pull was cut off, and rename it once its checksum is right."""
    part = partial / f"{_PART}{entry.sha256}"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as stream:
        begin = os.fstat(stream.fileno()).st_size
        if begin > entry.size:
            stream.truncate(0)
            begin = 0
        stream.seek(begin)
        if begin < entry.size:
            with place.open(name, begin) as remote:
                _copy(remote, stream, entry.size - begin, name)
        stream.flush()
        os.fsync(stream.fileno())
        stream.seek(0)
        actual = _hashed(stream)
    if actual != entry:
        if actual.size == entry.size:  # what is short goes on next time
            part.unlink()
        raise StorageError(
            f"{name} of {place.address} is damaged or cut off: {actual.size:,} of {entry.size:,} bytes, SHA-256 "
            f"{actual.sha256[:12]}… instead of {entry.sha256[:12]}…; run it again"
        )
    file = inside(partial, name)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.replace(part, file)


def _copy(remote: BinaryIO, local: BinaryIO, size: int, name: str) -> None:
    """Copy what a file should have at most, and see that it has no more."""
    left = size
    while left and (piece := remote.read(min(PIECE, left))):
        local.write(piece)
        left -= len(piece)
    if not left and remote.read(1):
        raise StorageError(f"{name} is longer than its manifest says; its place was changed, so run it again later")


def _check_checkpoints(partial: Path) -> None:
    """Refuse a checkpoint that is not whole, or has files besides its own."""
    listing = scan(partial / CHECKPOINTS)
    if listing.problems:
        raise StorageError(f"what was pulled cannot be used: {shown(listing.problems[0])}")
    for entry in listing.entries:
        if foreign := verify(entry):
            raise StorageError(f"what was pulled cannot be used: {entry.path} also holds {foreign[0]!r}")


def _finish(partial: Path, folder: Path, manifest: Manifest) -> None:
    """Sync everything, and give it its name."""
    with (partial / MANIFEST).open("xb") as stream:
        stream.write(manifest.render())
        stream.flush()
        os.fsync(stream.fileno())
    for place, _, _ in os.walk(partial):
        sync_folder(Path(place))
    (partial / LOCK_FILE).unlink()
    _check_free(folder)
    os.rename(partial, folder)
    sync_folder(folder.absolute().parent)
