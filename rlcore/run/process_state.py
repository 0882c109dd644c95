"""What a run sets for its whole process: CPU threads, memory, deterministic kernels, generators; and its device."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

import torch

from rlcore.config.core import RunConfig
from rlcore.errors import ConfigError
from rlcore.process.first_calls import make_first_calls
from rlcore.state.generators import seed_all

_MIB: Final = 2**20
# numbers of glibc's malloc.h, with what they are set to: memory that stays at the end of the heap, and the size from
# which on memory is no part of the heap
_SETTINGS: Final[dict[int, int]] = {-1: 256 * _MIB, -3: 32 * _MIB}
_SET_BY_USER: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def choose_device(name: str) -> torch.device:
    """Return the device that `[run] device` names.

    Raises:
        ConfigError: there is no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ConfigError(f"[run] device = {name!r}: torch sees {count} CUDA devices; use 'auto' or 'cpu'")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"[run] device = {name!r}: torch sees no Apple GPU; use 'auto' or 'cpu'")
    return device


def prepare_process(run: RunConfig) -> None:
    """Set threads, memory, determinism and seeds, before anything of the run is built."""
    make_first_calls()  # an operation on many numbers is computed by all threads, the first one too
    torch.set_num_threads(run.threads)
    keep_freed_memory()
    if run.deterministic:
        # cuBLAS repeats only with a workspace of fixed size, and reads this when its first handle is made
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    seed_all(run.seed)


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
