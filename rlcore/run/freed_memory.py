"""Memory that the process keeps once it is freed, as the next update wants as much again."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_MIB: Final = 2**20
# numbers of glibc's malloc.h, with what they are set to: memory that stays at the end of the heap, and the size from
# which on memory is no part of the heap
_SETTINGS: Final[dict[int, int]] = {-1: 256 * _MIB, -3: 32 * _MIB}
_SET_BY_USER: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> None:
    """Let glibc keep what is freed, up to 256 MiB; elsewhere, and where the user has set it, nothing changes.

    Otherwise the large tensors of an update go back to the system each time, which hands out as many new pages, filled
    with zeros, in the next one: a fifth of the time of an update of CQL.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _SET_BY_USER):
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return
    for option, size in _SETTINGS.items():
        set_option(option, size)
