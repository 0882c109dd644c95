"""Having the disk hold many files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

# a file system writes its journal once for all that wait for it together, and once for each that waits alone
_AT_ONCE: Final = 32


def sync_all(folder: Path) -> None:
    """Have the disk hold whatever lies in a folder, and the folder itself; return when it does.

    Raises:
        OSError: the disk refuses something.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(sync, folder.rglob("*")):
            pass
    sync(folder)


def sync(path: Path) -> None:
    """Have the disk hold the content of a file, or the names in a folder.

    Raises:
        OSError: it refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
