"""The memory of rows: on the device of the run, in host memory, or in a mapped file below the run folder."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore_plugin_replay.layout import WORD

StorageKind = Literal["device", "memory", "memmap"]

FOLDER: Final = "replay"
# bytes to which torch aligns its memory, as vector instructions read it
_ALIGNMENT: Final = 64


def allocate(kind: StorageKind, shape: tuple[int, int], device: torch.device, folder: Path | None) -> Tensor:
    """Return zeros `[row, word]`, int64; the host takes memory when rows are written.

    Args:
        kind: `device`, `memory` or `memmap`.
        shape: rows and words.
        device: of the run.
        folder: of the run; a mapped file lies in `replay/` below it, or in the folder for temporary files.

    Raises:
        StorageError: there is no room for it.
    """
    if kind == "memmap":
        return _mapped(shape, folder)
    try:
        if kind == "memory" or device.type == "cpu":
            return _unwritten(shape)
        return torch.zeros(shape, dtype=WORD, device=device)
    except (MemoryError, RuntimeError, ValueError) as error:  # torch.OutOfMemoryError is one of these
        raise StorageError(
            f"no room for a replay buffer of {shape[0]:,} rows of {shape[1] * WORD.itemsize} bytes: {error}. Lower "
            '[buffer] capacity, or keep it elsewhere with storage = "memory" or "memmap".'
        ) from error


def _unwritten(shape: tuple[int, int]) -> Tensor:
    """Return zeros in host memory that the system clears at their first use; `torch.zeros` would write all of them."""
    size, extra = shape[0] * shape[1], _ALIGNMENT // WORD.itemsize
    words = np.zeros(size + extra, dtype=np.int64)
    begin = -words.ctypes.data % _ALIGNMENT // WORD.itemsize
    return torch.from_numpy(words[begin : begin + size].reshape(shape))


def _mapped(shape: tuple[int, int], folder: Path | None) -> Tensor:
    """Map a file without a name, so that its room is free again when the process ends, however it ends.

    All of its room is taken now: a disk that fills up later would end the process with a signal, not an error.
    """
    place = None if folder is None else folder / FOLDER
    size = shape[0] * shape[1] * WORD.itemsize
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as stream:
            _take_room(stream.fileno(), size)
            rows = np.memmap(stream, dtype=np.int64, mode="r+", shape=shape)
    except OSError as error:
        raise StorageError(
            f"no room for a replay buffer of {size:,} bytes in {place or tempfile.gettempdir()}: {error}. Lower "
            "[buffer] capacity, or choose another run.folder."
        ) from error
    return torch.from_numpy(rows)


def _take_room(descriptor: int, size: int) -> None:
    """Allocate the blocks of a file.

    Raises:
        OSError: the device has not that much room.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    room = os.statvfs(descriptor)
    if room.f_bavail * room.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(descriptor, size)
