"""Files that outlive a power cut: writing, hashing and syncing them."""

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

# above this, a sync or a hash takes longer than the start of a thread
_MANY_BYTES: Final = 16 << 20

T = TypeVar("T")


def describe_durable(file: Path) -> dict[str, Any]:
    """Sync a file of the back end to disk, and return its size and checksum."""
    try:
        with plain_file(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            # the sync waits for the disk while the hash needs the processor
            synced = beside(lambda: os.fsync(stream.fileno()), size)
            described = describe(stream)
            synced()
            return described
    except StorageError as error:
        raise StorageError(f"the back end made {file} for a checkpoint: {error}") from None


def beside(call: Callable[[], T], size: int) -> Callable[[], T]:
    """Begin a call, in a thread where it concerns many bytes; return a function that waits for its result."""
    if size < _MANY_BYTES:
        result = call()
        return lambda: result
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future.result


def write_durable(file: Path, text: str) -> None:
    """Write a file in UTF-8 and sync it; its name outlives a power cut once its folder is synced too."""
    with file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def sync_logs(files: Iterable[Path]) -> None:
    """Sync log files and their folders to disk; log a warning for one that cannot be synced."""
    folders = set()
    for file in files:
        try:  # nonblocking: opening a named pipe would wait for its other end
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:  # a log is made with its first line
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
        with suppress(OSError):  # some file systems cannot sync folders
            sync_folder(folder)


def describe(stream: BinaryIO, moved: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Return size and checksum of the rest of a stream; call `moved` after every MiB."""
    digest, size = xxhash.xxh3_128(), 0
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
        size += len(chunk)
        moved()
    return {"size": size, "xxh3": digest.hexdigest()}


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that the names of new files in it outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
