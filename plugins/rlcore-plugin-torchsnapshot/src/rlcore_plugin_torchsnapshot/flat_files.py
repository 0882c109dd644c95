"""Where torchsnapshot writes: plain files in one folder, each piece by piece."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
from torchsnapshot.io_types import ReadIO, StoragePlugin, WriteIO

from rlcore.state import pieces


def flat(location: str) -> str:
    """Return the name of the file for one of torchsnapshot's locations, which would be in folders."""
    return location.replace("/", ".")


class FlatFiles(StoragePlugin):
    """Writes each buffer into a file of its own.

    A buffer in a shared mapping of a file is gone through with its pages given back.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, write_io: WriteIO) -> None:
        """Write a buffer, in a thread.

        Raises:
            OSError: the device is full, read-only or failing.
        """
        await asyncio.get_running_loop().run_in_executor(None, self._write, write_io)

    def _write(self, write_io: WriteIO) -> None:
        content = np.frombuffer(write_io.buf, np.uint8)
        with (self._folder / flat(write_io.path)).open("wb", buffering=0) as stream:
            for piece in pieces(content):
                while len(piece):
                    piece = piece[stream.write(piece) :]
            os.fsync(stream.fileno())  # the device works on it while the next file is written

    async def read(self, read_io: ReadIO) -> None:
        """Refuse: the files are read without torchsnapshot, which unpickles."""
        raise NotImplementedError

    async def delete(self, path: str) -> None:
        """Refuse: checkpoints are removed by the core."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing: every file is closed."""
