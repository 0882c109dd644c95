"""Files that outlive a power cut: those of a checkpoint, written and hashed, and the logs that it counts on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import xxhash

from rlcore.errors import StorageError
from rlcore.files.plain_files import plain_file

log = logging.getLogger(__name__)

# from here on syncing or hashing takes longer than starting a thread for it
_MANY_BYTES: Final = 16 << 20

T = TypeVar("T")


def describe_durable(file: Path) -> dict[str, Any]:
    """Return size and checksum of a file of the back end, and see to it that it outlives a power cut."""
    try:
        with plain_file(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            synced = beside(lambda: os.fsync(stream.fileno()), size)
            described = describe(stream)
            synced()
            return described
    except StorageError as error:
        raise StorageError(f"the back end made {file} for a checkpoint: {error}") from None


def beside(call: Callable[[], T], size: int) -> Callable[[], T]:
    """Begin a call in a thread of its own when it concerns many bytes, and return what waits for its result."""
    if size < _MANY_BYTES:
        result = call()
        return lambda: result
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future.result


def write_durable(file: Path, text: str) -> None:
    """Write a file, in UTF-8, that outlives a power cut, once its folder is synced too."""
    with file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def sync_logs(files: Iterable[Path]) -> None:
    """Make log files, and their names, outlive a power cut; a checkpoint does not fail because of one that cannot."""
    folders = set()
    for file in files:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:  # nothing was written yet
            continue
        except OSError as error:
            log.warning("%s cannot be synced to disk: %s", file, error)
            continue
        try:
            os.fsync(descriptor)
        except OSError as error:
            log.warning("%s cannot be synced to disk: %s", file, error)
        finally:
            os.close(descriptor)
        folders.add(file.parent)
    for folder in folders:
        with suppress(OSError):
            sync_folder(folder)


def describe(stream: BinaryIO, moved: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Return size and checksum of what a stream holds."""
    digest, size = xxhash.xxh3_128(), 0
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
        size += len(chunk)
        moved()
    return {"size": size, "xxh3": digest.hexdigest()}


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
