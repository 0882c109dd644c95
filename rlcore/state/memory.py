"""The memory of tensors as bytes, and giving back the pages of tensors that lie in files.

A state larger than the memory it may use lies in a shared mapping of a file. Whoever goes through it leaves its pages
resident, unless they are given back on the way. Their content stays in the file and in the system's cache.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

# large enough that giving back a piece costs next to nothing, small enough to be resident
PIECE_BYTES: Final = 16 << 20
# as on Linux, which alone shows such mappings; `mmap` has the name on some systems only
_MADV_DONTNEED: Final = 4


def bytes_of(tensor: Tensor) -> Any:
    """Return the memory of a contiguous CPU tensor as a NumPy array `[n]` of type uint8."""
    flat = tensor.detach().reshape(-1)
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)


def pieces(content: Any) -> Iterator[Any]:
    """Yield an array `[n]` of type uint8 in one piece, or a large one in a shared mapping of a file in several.

    Those have 16 MiB, and the pages of each are given back after its use.
    """
    if len(content) <= PIECE_BYTES or not in_shared_file(content):
        yield content
        return
    for begin in range(0, len(content), PIECE_BYTES):
        piece = content[begin : begin + PIECE_BYTES]
        yield piece
        let_go(piece)


def copy_in_pieces(target: Tensor, source: Tensor) -> None:
    """Copy a tensor of the same shape, without having all of it in memory where it lies in a mapped file.

    For parts that take back a large state: a checkpoint may give it as a mapped file. Nothing is copied when both are
    the same memory, as after a restore in place.
    """
    if target.data_ptr() == source.data_ptr() and target.nbytes:
        return
    if not (is_plain(target) and is_plain(source) and target.dtype == source.dtype):
        target.copy_(source)
        return
    into, content = bytes_of(target), bytes_of(source)
    in_files = [memory for memory in (into, content) if len(content) > PIECE_BYTES and _can_be_given_back(memory)]
    for begin in range(0, len(content), PIECE_BYTES):
        piece = slice(begin, begin + PIECE_BYTES)
        into[piece] = content[piece]
        for memory in in_files:
            let_go(memory[piece])


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is contiguous memory of the CPU."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous()


def _can_be_given_back(content: Any) -> bool:
    """Return whether the pages of a buffer come back from a file: a shared mapping, or a private one never written."""
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    return in_shared_file(content) or any(low <= begin and end <= high for low, high in _unwritten_mappings())


def in_shared_file(content: Any) -> bool:
    """Return whether an array `[n]` of type uint8 lies in a shared mapping of a file.

    False wherever the system does not say: only Linux does.
    """
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    return any(low <= begin and end <= high for low, high in _shared_mappings())


def let_go(content: Any) -> None:
    """Give back the pages of a buffer in a shared mapping of a file; what was written there is not lost.

    Only whole pages inside the buffer are given back. In other memory this would lose data.
    """
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    last = end // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        _libc().madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED)


def _shared_mappings() -> Iterator[tuple[int, int]]:
    """Yield begin and end of each; mappings that touch are one, since a large one may be listed in parts."""
    try:
        with open("/proc/self/maps") as stream:
            lines = [line.split() for line in stream]
    except OSError:
        return
    low = high = 0
    for addresses, permissions, _, _, node, *path in lines:
        name = "".join(path)
        if permissions[3] != "s" or node == "0" or (name.startswith("/dev/") and not name.startswith("/dev/shm/")):
            continue
        begin, end = (int(address, 16) for address in addresses.split("-"))
        if begin != high:
            if high:
                yield low, high
            low = begin
        high = end
    if high:
        yield low, high


def _unwritten_mappings() -> Iterator[tuple[int, int]]:
    """Yield begin and end of each private mapping of a file of which no page was written."""
    try:
        with open("/proc/self/smaps") as stream:
            lines = [line.split() for line in stream]
    except OSError:
        return
    place = (0, 0)
    for first, *rest in lines:
        if not first.endswith(":"):
            permissions, _, _, node, *_ = rest
            begin, end = (int(address, 16) for address in first.split("-"))
            place = (begin, end) if permissions[3] == "p" and node != "0" else (0, 0)
        elif first == "Anonymous:" and rest[0] == "0" and place[1]:
            yield place


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
