"""Files of a checkpoint that outlive a power cut: writing and hashing them, with the waiting for the device beside."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from rlcore.errors import StorageError
from rlcore.inside import plain_file
from rlcore.manifest import describe

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
    """Write a file that outlives a power cut, once its folder is synced too."""
    with file.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
