"""The memory of tensors as bytes, and releasing the pages of tensors in mapped files.

A buffer larger than the memory lies in a shared mapping of a file. Reading or writing makes its pages resident until
they are released. Their content stays in the file and in the cache of the system.
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

# large enough that a call of `madvise` costs next to nothing, small enough to be resident
PIECE_BYTES: Final = 16 << 20
# the value on Linux, as the mappings are listed there alone; the module `mmap` lacks the name on some systems
_MADV_DONTNEED: Final = 4


def bytes_of(tensor: Tensor) -> Any:
    """Return the memory of a contiguous CPU tensor as a NumPy array `[n]` of type uint8."""
    flat = tensor.detach().reshape(-1)
    # a tensor of one element may have any stride, and `view` to bytes wants 1; one without elements has no memory
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)


def pieces(content: Any) -> Iterator[Any]:
    """Yield an array `[n]` of type uint8: in pieces of 16 MiB where it lies in a mapped file, else as a whole.

    The pages of each piece are released after its use.
    """
    if len(content) <= PIECE_BYTES or not in_shared_file(content):
        yield content
        return
    for begin in range(0, len(content), PIECE_BYTES):
        piece = content[begin : begin + PIECE_BYTES]
        yield piece
        let_go(piece)


def copy_in_pieces(target: Tensor, source: Tensor) -> None:
    """Copy a tensor to one of the same shape, in pieces where one of them lies in a mapped file.

    For `load_state_dict` of parts with a large state, which a checkpoint may hold as a mapped file. Nothing is copied
    when both are the same memory, as after `load_into`.
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
    """Return whether a tensor is dense and contiguous, and on the CPU."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous()


def _can_be_given_back(content: Any) -> bool:
    """Return whether released pages of a buffer come back from a file: of a shared or an unwritten mapping."""
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    return in_shared_file(content) or any(low <= begin and end <= high for low, high in _unwritten_mappings())


def in_shared_file(content: Any) -> bool:
    """Return whether an array `[n]` of type uint8 lies in a shared mapping of a file.

    False on every system but Linux, which alone lists the mappings of a process.
    """
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    return any(low <= begin and end <= high for low, high in _shared_mappings())


def let_go(content: Any) -> None:
    """Release the pages of a buffer in a shared mapping of a file; written data stays in the file.

    In other memory this would lose data.
    """
    # only whole pages inside the buffer: the first and the last page may hold data of a neighbour
    begin, end = content.ctypes.data, content.ctypes.data + content.nbytes
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    last = end // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        _libc().madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED)


def _shared_mappings() -> Iterator[tuple[int, int]]:
    """Yield begin and end of each shared mapping; those that touch are one, as the system may list one in parts."""
    try:
        with open("/proc/self/maps") as stream:
            lines = [line.split() for line in stream]
    except OSError:
        return
    low = high = 0
    for addresses, permissions, _, _, node, *path in lines:
        name = "".join(path)
        # inode 0 is memory without a file; below /dev are devices, except for the files of /dev/shm
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
    """Yield begin and end of each private mapping of a file that has no written page."""
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
        elif first == "Anonymous:" and rest[0] == "0" and place[1]:  # a written page is a copy, called anonymous
            yield place


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
